import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { enterKey, headersOf, type KeyHolder, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { startService, startWithProgram } from '../../support/service/service.js';

describe('The page Jobs', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  const list = () => browser.page.getByRole('navigation', { name: 'Jobs', exact: true });
  const open = () => browser.page.getByRole('region', { name: 'Background job', exact: true });
  const press = (name: string) => browser.page.getByRole('button', { name, exact: true }).click();

  it('explains how to start a job if there are none', async () => {
    await using service = await startService();
    await openConsole(browser, service, '/jobs');
    await browser.page.getByText('No jobs').waitFor();
    await expectGoodLooks(browser.page, 'jobs-none');
    expectClean(browser, service);
  });

  it('shows a job started on the page Ask, follows it, cancels another, and deletes it', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, { MODEL_API_MAX_CONCURRENT: '1' });
    await openConsole(browser, service, '/ask');
    await browser.page.getByRole('textbox', { name: 'Message' }).fill('# Hello\n\nwith **weight**');
    await press('Options');
    await expectGoodLooks(browser.page, 'jobs-send');
    await press('Ask in the background');
    await open().getByRole('heading', { name: '# Hello with **weight**' }).waitFor();
    const second = await service.post('/ask', { prompt: 'Me, too' }, { prefer: 'respond-async' });
    await list().getByText('queued, place 1').waitFor();
    await expectGoodLooks(browser.page, 'jobs-running');
    await list().getByText('Me, too').click();
    await press('Cancel');
    await open().getByText('cancelled').last().waitFor();
    await press('Delete');
    await browser.page.getByText('The job was deleted.').waitFor();
    expect((await service.get(`/jobs/${second.body.job_id}`)).status).toBe(404);
    await list().getByText('# Hello with **weight**').click();
    await gate.open();
    await open().getByText('succeeded').last().waitFor();
    await open().locator('.markdown strong', { hasText: 'weight' }).waitFor();
    await list().getByText('succeeded').waitFor();
    await expectGoodLooks(browser.page, 'jobs-ended');
    await open().getByRole('link', { name: 'Continue in Ask' }).click();
    await browser.page.locator('.turn').first().waitFor();
    expectClean(browser, service);
  });

  it('lists and cancels waiting and running requests: those of the client, and for an administrator all', async () => {
    await using keys = await writeNamedKeys();
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, { ...keys.env, MODEL_API_MAX_CONCURRENT: '1' });
    const ask = (prompt: string, who: KeyHolder) => service.post('/ask', { prompt }, headersOf(who));
    const [mine, hers] = [ask('Mine', 'operator'), ask('Hers', 'alice')];
    await openConsole(browser, service, '/jobs');
    await enterKey(browser.page, keyOf('operator'));
    await list().getByText('Mine').first().waitFor();
    await press('Jobs of all clients');
    await list().getByText('key alice').first().waitFor();
    await expectGoodLooks(browser.page, 'jobs-all');
    await list().getByRole('button', { name: 'Cancel key alice' }).click();
    expect((await hers).status).toBe(403);
    await press('Jobs of all clients');
    await list().getByRole('button', { name: 'Cancel Mine' }).click();
    expect((await mine).status).toBe(403);
    await browser.page.getByText('No jobs').waitFor();
    await gate.open();
    expectClean(browser, service, /status of 401/);
  });

  it('shows a streamed answer as it arrives, and an earlier one page by page', async () => {
    await using service = await startService();
    const ids: unknown[] = [];
    for (let count = 0; count < 32; count++) {
      const { body } = await service.post(
        '/ask',
        { prompt: `Job ${count}`, model: 'echo' },
        { prefer: 'respond-async' },
      );
      ids.push(body.job_id);
    }
    await openConsole(browser, service, `/jobs?id=${ids[0]}`);
    await open().getByRole('article').getByText('Job 0').waitFor();
    await list().getByRole('link').nth(29).scrollIntoViewIfNeeded(); // the rest of the list is then loaded
    await list().getByRole('link').nth(31).waitFor();
    await openConsole(browser, service, '/jobs?id=unknown');
    await browser.page.getByText('Not found').waitFor();
    expectClean(browser, service, /status of 404/);
  });
});
