import { withResolvers } from '../../../src/shared/async.js';
import { AskPage } from '../../support/clients/ask-page.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, openConsole } from '../../support/clients/console.js';
import { orderedProgram } from '../../support/clients/sdk-lab.js';
import { clearAway } from '../../support/jobs/jobs.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

describe('A message that is written during an answer', () => {
  let browser: Browser;
  let service: Service;
  let ask: AskPage;

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

  it('is sent by Enter or a button, comes next, and is answered on the page, also in a new conversation', async () => {
    await openConsole(browser, service, '/ask');
    await ask.send('drip 150 30');
    await ask.lastAnswer.getByText(/\b9 10\b/).waitFor();
    expect(await ask.button('Send next').count()).toBe(0); // nothing is written
    await ask.message.fill('drip 2 1');
    await ask.button('Send next').waitFor();
    await ask.message.press('Enter');
    await browser.page.getByText('Your message comes next.').waitFor();
    expect(await ask.message.inputValue()).toBe('');
    await ask.message.fill('drip 3 1');
    await ask.button('Send next').click();
    await ask.turns.nth(2).waitFor();
    await ask.turns.nth(2).getByText('1 2 3').waitFor();
    const texts = await ask.turns.allInnerTexts();
    expect(texts.map((text) => /drip \d+/.exec(text)?.[0])).toEqual(['drip 150', 'drip 2', 'drip 3']);
    expect(await ask.turns.count()).toBe(3);
    expectClean(browser, service);
  }, 60_000);

  it('is taken out of its field when the service has it, but not what the user has written meanwhile', async () => {
    await openConsole(browser, service, '/ask');
    await ask.send('drip 300 30');
    await ask.lastAnswer.getByText(/\b9 10\b/).waitFor();
    const { promise: answered, resolve: answer } = withResolvers();
    const steered = { success: true, reached: 'turn', interrupted: false, job_id: null, request_id: 'x' };
    await browser.page.route('**/steer', async (route) => {
      await answered;
      await route.fulfill({ status: 200, json: steered });
    });
    await ask.message.fill('drip 2 1');
    await Promise.all([browser.page.waitForRequest('**/steer'), ask.message.press('Enter')]);
    await ask.message.fill('And then?');
    answer();
    await browser.page.getByText('The model has your message.').waitFor();
    expect(await ask.message.inputValue()).toBe('And then?');
    await browser.page.unroute('**/steer');
    await ask.button('Stop').click();
  });

  it('is shown with the stored answer that it was added to', async () => {
    const answer = { role: 'assistant', content: 'Let me look. Paris.', interrupted: true } as const;
    const added_messages = [{ at: 12, content: 'Only in France.' }];
    const messages = [
      { role: 'user', content: 'Which towns?' },
      { ...answer, added_messages },
    ];
    const { body } = await service.post('/chat/import', { messages });
    await openConsole(browser, service, `/ask?conversation=${body.conversation_id}`);
    await ask.lastAnswer.getByText('You added during the answer: Only in France.').waitFor();
    await ask.lastAnswer.getByText('ended early').waitFor();
    expectClean(browser, service);
  });

  it('stays in its field if the service refuses it', async () => {
    await openConsole(browser, service, '/ask');
    await ask.send('drip 300 30');
    await ask.lastAnswer.getByText(/\b9 10\b/).waitFor();
    await browser.page.route('**/steer', (route) =>
      route.fulfill({ status: 409, json: { error: 'turn_ended', message: 'too late', request_id: 'x' } }),
    );
    await ask.message.fill('drip 2 1');
    await ask.message.press('Enter');
    await browser.page.getByText('too late').waitFor();
    expect(await ask.message.inputValue()).toBe('drip 2 1');
    await ask.button('Stop').click();
    await browser.page.unroute('**/steer');
  });
});
