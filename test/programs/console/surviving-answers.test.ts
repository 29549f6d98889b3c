import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { AskPage } from '../../support/clients/ask-page.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, openConsole } from '../../support/clients/console.js';
import { orderedProgram } from '../../support/clients/sdk-lab.js';
import { clearAway } from '../../support/jobs/jobs.js';
import { startCuttingProxy } from '../../support/service/cutting-proxy.js';
import { type Service, startService, startWithProgram, twoWorkers } from '../../support/service/service.js';

const cuts = 20;

/** Returns a program that counts until the file `end` exists. */
function countingProgram(end: string): string {
  return `let count = 0;
    const write = () => {
      process.stdout.write(++count + ' ');
      if (!require('fs').existsSync(${JSON.stringify(end)})) setTimeout(write, 20);
    };
    process.stdin.resume().on('end', write);`;
}

function wordsTo(last: number): string {
  return Array.from({ length: last }, (_, index) => index + 1).join(' ');
}

describe('An answer in the console', () => {
  let browser: Browser;
  let service: Service;
  let ask: AskPage;

  beforeAll(async () => {
    browser = await startBrowser();
    service = await startService({ env: { ...orderedProgram, MODEL_API_WORKERS: '2' } });
    ask = new AskPage(browser.page);
  });
  afterAll(async () => {
    await service.stop();
    await browser[Symbol.asyncDispose]();
  });

  afterEach(() => clearAway(service));

  /** Expects one answer with all words, on the page and in the stored conversation, and no job left on the page Jobs. */
  async function expectExact(last: number): Promise<void> {
    await ask.answer();
    expect(await ask.lastAnswer.locator('p').first().innerText()).toBe(wordsTo(last));
    const id = await ask.conversationId();
    const { body } = await service.get(`/chat/${id}/messages`);
    const contents = (body.messages as readonly { readonly content: string }[]).map(({ content }) => content.trim());
    expect(contents).toEqual([expect.stringMatching(/^drip/), wordsTo(last)]);
    await untilNoJobs();
  }

  const untilNoJobs = () =>
    until(async () => ((await service.get('/jobs')).body.jobs as object[]).length === 0, 'no job to be listed');

  it(`is exact although its connection was cut ${cuts} times`, async () => {
    await using folder = await temporaryFolder();
    const [program, end] = [join(folder.path, 'counts.js'), join(folder.path, 'end')];
    await writeFile(program, countingProgram(end));
    await using counting = await startWithProgram(`${process.execPath} ${program}`, twoWorkers);
    await using proxy = await startCuttingProxy(counting.port, cuts);
    await openConsole(browser, { url: proxy.url }, '/ask');
    await ask.send('Count');
    await until(async () => proxy.left === 0, 'all cuts', 100_000);
    await writeFile(end, '');
    await ask.answer();
    const shown = await ask.lastAnswer.locator('p').first().innerText();
    expect(shown).toBe(wordsTo(shown.split(' ').length));
    const id = await ask.conversationId();
    const { messages } = (await counting.get(`/chat/${id}/messages`)).body as { messages: { content: string }[] };
    expect(messages.map(({ content }) => content.trim())).toEqual(['Count', shown]);
    expect(await ask.turns.count()).toBe(1);
  }, 150_000);

  it('continues after a reload in the middle, and can be stopped then', async () => {
    await openConsole(browser, service, '/ask');
    await ask.send('drip 150 20');
    await ask.lastAnswer.getByText(/\b9 10\b/).waitFor();
    await ask.page.reload();
    await ask.lastAnswer.getByText(/\b29 30\b/).waitFor();
    await expectExact(150);
    await ask.send('drip 3000 20');
    await ask.lastAnswer.getByText(/\b9 10\b/).waitFor();
    await ask.page.reload();
    await ask.lastAnswer.getByText(/\b29 30\b/).waitFor();
    expect(await ask.turns.count()).toBe(2);
    await ask.button('Stop').click();
    await ask.lastAnswer.getByText('Stopped.').waitFor();
    await untilNoJobs();
    expectClean(browser, service);
  });

  it('continues after the network was lost', async () => {
    await using proxy = await startCuttingProxy(service.port, 0);
    await openConsole(browser, { url: proxy.url }, '/ask');
    await ask.send('drip 150 20');
    await ask.lastAnswer.getByText(/\b9 10\b/).waitFor();
    proxy.down();
    await ask.page.getByText('Connection lost. Reconnecting').waitFor();
    proxy.up();
    await expectExact(150);
  });

  it('is a plain request if no background job may wait', async () => {
    await using plain = await startService({ env: { ...orderedProgram, MODEL_API_MAX_JOBS: '0' } });
    await openConsole(browser, plain, '/ask');
    await ask.send('drip 20 10');
    await ask.answer();
    expect(await ask.lastAnswer.locator('p').first().innerText()).toBe(wordsTo(20));
    expect(plain.logs.filter(({ event }) => event === 'background_job_ended')).toEqual([]);
    expectClean(browser, plain, /status of 429/);
  });
});
