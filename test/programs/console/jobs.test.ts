import { type Browser, startBrowser } from '../../support/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/console.js';
import { createGate } from '../../support/gate.js';
import { startService, startWithProgram } from '../../support/service.js';

describe('The page Jobs', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  const list = () => browser.page.getByRole('navigation', { name: 'Background jobs' });
  const open = () => browser.page.getByRole('region', { name: 'Background job', exact: true });
  const press = (name: string) => browser.page.getByRole('button', { name, exact: true }).click();

  it('says where there are none, and how there would be', async () => {
    await using service = await startService();
    await openConsole(browser, service, '/jobs');
    await browser.page.getByText('No background jobs').waitFor();
    await expectGoodLooks(browser.page, 'jobs-none');
    expectClean(browser, service);
  });

  it('shows one that was sent on the page Ask, follows it, cancels another, and forgets it', async () => {
    await using gate = await createGate();
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

  it('shows a streamed answer as it comes, and one that was there before, page by page', async () => {
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
    await list().getByRole('link').nth(29).waitFor();
    await press('Show more');
    await list().getByRole('link').nth(31).waitFor();
    await openConsole(browser, service, '/jobs?id=unknown');
    await browser.page.getByText('Not found').waitFor();
    expectClean(browser, service, /status of 404/);
  });
});
