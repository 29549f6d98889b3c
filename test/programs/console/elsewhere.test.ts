import type { Page } from 'playwright-core';
import { AskPage } from '../../support/clients/ask-page.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, openConsole, untilCount } from '../../support/clients/console.js';
import { orderedProgram } from '../../support/clients/sdk-lab.js';
import { clearAway, untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

describe('An answer that was asked elsewhere', () => {
  let browser: Browser;
  let service: Service;
  let ask: AskPage;
  let id: string;

  beforeAll(async () => {
    browser = await startBrowser();
    service = await startService({ env: { ...orderedProgram, ...twoWorkers } });
    ask = new AskPage(browser.page);
  });
  afterAll(async () => {
    await service.stop();
    await browser[Symbol.asyncDispose]();
  });
  afterEach(() => clearAway(service));
  beforeEach(async () => {
    const { body } = await service.post('/chat', { message: 'drip 3 1' });
    id = body.conversation_id as string;
    await openConsole(browser, service, `/ask?conversation=${id}`);
    await ask.lastAnswer.getByText('1 2 3').waitFor();
  });

  /** Opens the conversation in a second tab of the browser. */
  async function inSecondTab(work: (second: AskPage, page: Page) => Promise<void>): Promise<void> {
    const page = await browser.page.context().newPage();
    try {
      await page.goto(`${service.url}/console/#/ask?conversation=${id}`);
      await work(new AskPage(page), page);
    } finally {
      await page.close();
    }
  }

  const marked = (page: Page) => page.getByRole('navigation', { name: 'Conversations' }).getByText('Answering');

  it('is shown while it grows, in another tab and after a reload there', async () => {
    await inSecondTab(async (second, page) => {
      await second.lastAnswer.getByText('1 2 3').waitFor();
      await ask.send('drip 400 30');
      await second.lastAnswer.getByText(/\b9 10\b/).waitFor();
      expect(await second.turns.count()).toBe(2);
      await second.button('Stop').waitFor();
      await marked(page).waitFor();
      await page.reload();
      await second.lastAnswer.getByText(/\b59 60\b/).waitFor();
      expect(await second.turns.count()).toBe(2);
      expect(await second.turns.last().innerText()).toContain('drip 400 30');
      expect(await second.answer()).toMatch(/\b399 400\b/);
      expect(await ask.answer()).toMatch(/\b399 400\b/);
      await second.send('drip 2 1'); // the conversation continues there, and the first tab shows it
      expect(await second.answer()).toContain('1 2');
      await ask.turns.nth(2).waitFor();
      expect(await ask.answer()).toContain('1 2');
    });
    expectClean(browser, service);
  }, 60_000);

  it('can be stopped in another tab', async () => {
    await inSecondTab(async (second) => {
      await ask.send('drip 3000 30');
      await second.lastAnswer.getByText(/\b9 10\b/).waitFor();
      await second.button('Stop').click();
      await ask.lastAnswer.getByText('Stopped.').waitFor();
      await untilJobs(service, 0, 0);
      await second.button('Send').waitFor();
      await untilCount(second.turns, 1);
    });
  }, 60_000);

  it('is shown at its end if it was a plain request of a program', async () => {
    const asked = service.post('/chat', { message: 'drip 200 20', conversation_id: id });
    await ask.turns.nth(1).waitFor();
    expect(await ask.turns.last().innerText()).toContain('drip 200 20');
    await ask.button('Stop').waitFor();
    expect((await service.get(`/chat/${id}`)).body.open_turn).toMatchObject({ background: false, status: 'running' });
    expect((await asked).status).toBe(200);
    expect(await ask.answer()).toMatch(/\b199 200\b/);
    expect((await service.get(`/chat/${id}`)).body).toMatchObject({ open_turn: null, message_count: 4 });
    expectClean(browser, service);
  });
});
