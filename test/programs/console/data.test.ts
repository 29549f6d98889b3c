import { readFile } from 'node:fs/promises';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { enterKey, headersOf, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { startService } from '../../support/service/service.js';

describe('The page Your data', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  it('shows what is stored and for how long, and saves what is stored of the client', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: keys.env });
    for (const holder of ['alice', 'bob'] as const)
      await service.post('/chat', { message: `I am ${holder}` }, headersOf(holder));
    await openConsole(browser, service, '/data');
    await enterKey(browser.page, keyOf('alice'));
    await browser.page.getByRole('heading', { name: 'Conversations' }).waitFor();
    await browser.page.getByText('1 day after its last activity, or until there are too many').waitFor();
    await expectGoodLooks(browser.page, 'data');
    const [download] = await Promise.all([
      browser.page.waitForEvent('download'),
      browser.page.getByRole('button', { name: 'Export my data' }).click(),
    ]);
    const text = await readFile(await download.path(), 'utf8');
    expect(text).toContain('I am alice');
    expect(text).not.toContain('I am bob');
    expect(JSON.parse(text.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ counts: { conversation: 1 } });
    expectClean(browser, service, /401/); // before the key was entered
  });
});
