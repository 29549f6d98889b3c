import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { pdfOf } from '../../support/basics/pdf.js';
import { AskPage, pngBytes } from '../../support/clients/ask-page.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { enterKey, keyOf } from '../../support/doors/named-keys.js';
import { startService } from '../../support/service/service.js';

describe('The page Ask', () => {
  let browser: Browser;
  let ask: AskPage;

  beforeAll(async () => {
    browser = await startBrowser();
    ask = new AskPage(browser.page);
  });
  beforeEach(() => browser.page.setViewportSize({ width: 1280, height: 800 }));
  afterAll(() => browser[Symbol.asyncDispose]());

  const files = () => ask.page.locator('.composer input[type=file]');

  /** Starts a service with one key that has these options. */
  async function startWithKey(folder: string, name: string, options: string) {
    const path = join(folder, 'keys');
    await writeFile(path, `${name}:sha256:${digestOf(keyOf(name))}:${options}\n`, { mode: 0o600 });
    return startService({ env: { MODEL_API_KEYS_FILE: path } });
  }

  it('says when a key expired', async () => {
    await using folder = await temporaryFolder();
    await using service = await startWithKey(folder.path, 'old', 'expires=2026-01-02');
    await openConsole(browser, service, '/ask');
    await ask.send('Hello');
    await enterKey(ask.page, keyOf('old'));
    await ask.page
      .getByText(/^Your key expired on \d Jan 2026, \d\d:\d\d: ask the operator for a new one\.$/)
      .waitFor();
    await expectGoodLooks(ask.page, 'key-expired', ['wide']);
    expectClean(browser, service, /status of 401/);
  });

  it('says how much of a budget is used, and when it resets', async () => {
    await using folder = await temporaryFolder();
    await using service = await startWithKey(folder.path, 'poor', 'tokens=1/day');
    await openConsole(browser, service, '/ask');
    await ask.send('Hello');
    await enterKey(ask.page, keyOf('poor'));
    await ask.answer();
    await ask.send('And again');
    await ask.lastAnswer.getByText('Limit reached', { exact: true }).waitFor();
    await ask.lastAnswer
      .getByText(/^Your daily budget is used up: \d+ of 1 tokens\. It resets (at|on \d.*,) \d\d:\d\d\.$/)
      .waitFor();
    await expectGoodLooks(ask.page, 'ask-budget', ['wide']);
    expectClean(browser, service, /status of 4(01|29)/);
  });

  it('checks each file before it is sent, and names a file that the service refuses', async () => {
    await using service = await startService();
    await openConsole(browser, service, '/ask');
    await files().setInputFiles([
      { name: 'cut.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.7 and no end') },
      { name: 'closed.pdf', mimeType: 'application/pdf', buffer: pdfOf({ trailer: '/Encrypt 9 0 R' }) },
      { name: 'empty.txt', mimeType: 'text/plain', buffer: Buffer.from('\n') },
      { name: 'broken.png', mimeType: 'image/png', buffer: pngBytes.subarray(0, 30) },
      { name: 'good.txt', mimeType: 'text/plain', buffer: Buffer.from('good') },
    ]);
    await ask.page.getByText('cut.pdf is not a whole PDF: its end is missing.').waitFor();
    await ask.page.getByText('closed.pdf is encrypted: remove its password, or its protection.').waitFor();
    await ask.page.getByText('empty.txt is empty.').waitFor();
    await ask.page.getByText('broken.png is a damaged image.').waitFor();
    await ask.button('Remove good.txt').waitFor();
    await expectGoodLooks(ask.page, 'ask-faulty-files', ['wide']);
    await files().setInputFiles([{ name: 'long.pdf', mimeType: 'application/pdf', buffer: pdfOf({ pages: 101 }) }]);
    await ask.button('Remove long.pdf').waitFor();
    await ask.send('What do they say?');
    await ask.lastAnswer.getByText('This file cannot be used', { exact: true }).waitFor();
    await ask.lastAnswer.getByText('“long.pdf” has more than 100 pages.').waitFor();
    expectClean(browser, service, /status of 400/);
  });

  it('removes and replaces the files of a message that is edited', async () => {
    await using service = await startService();
    await openConsole(browser, service, '/ask');
    await files().setInputFiles([
      { name: 'first.txt', mimeType: 'text/plain', buffer: Buffer.from('first') },
      { name: 'second.txt', mimeType: 'text/plain', buffer: Buffer.from('second') },
    ]);
    await ask.button('Remove second.txt').waitFor();
    await ask.ask('What do they say?');
    const turn = ask.turns.last();
    await turn.hover();
    await turn.getByRole('button', { name: 'Edit' }).click();
    await turn.getByRole('button', { name: 'Remove first.txt' }).click();
    await turn.locator('input[type=file]').setInputFiles([
      { name: 'third.txt', mimeType: 'text/plain', buffer: Buffer.from('third') },
      { name: 'none.txt', mimeType: 'text/plain', buffer: Buffer.from('') },
    ]);
    await turn.getByText('none.txt is empty.').waitFor();
    await expectGoodLooks(ask.page, 'ask-edit-files');
    await turn.getByLabel('Your question').press('Escape');
    await turn.getByRole('button', { name: 'Edit (not sent)' }).click();
    await turn.getByRole('button', { name: 'Remove third.txt' }).waitFor();
    const [request] = await Promise.all([
      ask.page.waitForRequest('**/chat'),
      turn.getByRole('button', { name: 'Send edit' }).click(),
    ]);
    const { files: sent } = request.postDataJSON() as { files: { name: string }[] };
    expect(sent.map(({ name }) => name)).toEqual(['second.txt', 'third.txt']);
    await ask.answer();
    expect(await ask.turns.last().locator('.asked .document').count()).toBe(2);
    expectClean(browser, service);
  });
});
