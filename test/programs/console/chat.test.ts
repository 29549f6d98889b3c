import type { Locator } from 'playwright-core';
import { until } from '../../support/basics/until.js';
import { AskPage } from '../../support/clients/ask-page.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import {
  expectClean,
  expectGoodLooks,
  openConsole,
  untilCount,
  untilEvaluates,
  untilValue,
} from '../../support/clients/console.js';
import { clearAway, untilJobs } from '../../support/jobs/jobs.js';
import { type Service, script, startService, startWithProgram } from '../../support/service/service.js';

const schema = '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}';
const conversationCount = 40;
const dayMs = 86_400_000;
const isAtEnd = 'document.documentElement.scrollHeight - innerHeight - scrollY < 2';

const focused = '(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()';
const hash = 'location.hash';

describe('A chat in the console', () => {
  let browser: Browser;
  let service: Service;
  let ask: AskPage;

  beforeAll(async () => {
    browser = await startBrowser();
    ask = new AskPage(browser.page);
  });
  beforeEach(() => browser.page.setViewportSize({ width: 1280, height: 800 }));
  afterEach(() => browser.page.unrouteAll());
  afterAll(() => browser[Symbol.asyncDispose]());

  const list = () => browser.page.getByRole('navigation', { name: 'Conversations' });
  const entry = (title: string | RegExp) => list().locator('li').filter({ hasText: title });
  const press = (name: string) => browser.page.getByRole('button', { name, exact: true }).click();
  const has = (expression: string, wanted: string | RegExp) => untilEvaluates(browser.page, expression, wanted);

  async function talk(title: string, model = 'echo'): Promise<string> {
    const { body } = await service.post('/chat', { message: title, model });
    return body.conversation_id as string;
  }

  describe('next to forty others', () => {
    beforeAll(async () => {
      service = await startService({ env: { MODEL_API_MAX_CONCURRENT: '8' } });
      await Promise.all(Array.from({ length: conversationCount }, (_, index) => talk(`Talk ${index + 1}.`)));
    });
    afterAll(() => service.stop());
    beforeEach(() => clearAway(service, (title) => !/^Talk \d+\.$/.test(title)));
    afterEach(() => expectClean(browser, service));

    it('has the height of the list, which loads further pages while the reader scrolls', async () => {
      await openConsole(browser, service, '/ask');
      await list().getByRole('heading', { name: 'Today' }).waitFor();
      const heights = '[document.documentElement.scrollHeight, scrollY].join()';
      await has(heights, '800,0');
      const bottoms = `['.history', '.ask'].map((name) => document.querySelector(name).getBoundingClientRect().bottom).join()`;
      const [listBottom, chatBottom] = String(await browser.page.evaluate(bottoms))
        .split(',')
        .map(Number);
      expect(Math.abs((listBottom ?? 0) - (chatBottom ?? 9999))).toBeLessThan(1);
      await until(async () => {
        await browser.page.evaluate("document.querySelector('.talks').scrollTo(0, 1e6)");
        return (await list().getByRole('link').count()) === conversationCount;
      }, 'all conversations to be listed');
      for (const shown of [ask.button('New conversation'), browser.page.getByLabel('Search conversations')]) {
        expect((await shown.boundingBox())?.y).toBeGreaterThan(0);
      }
      await browser.page.setViewportSize({ width: 360, height: 740 });
      await press('Conversations');
      await list().getByRole('heading', { name: 'Today' }).waitFor();
      await browser.page.evaluate("document.querySelector('dialog .talks').scrollTo(0, 1e6)");
      const newOne = browser.page.getByRole('dialog').getByRole('button', { name: 'New conversation' });
      expect((await newOne.boundingBox())?.y).toBeGreaterThan(0);
      await browser.page.keyboard.press('Escape');
    });

    it('keeps the scroll position of the list when an answer arrives', async () => {
      await openConsole(browser, service, '/ask');
      await until(async () => {
        await browser.page.evaluate("document.querySelector('.talks').scrollTo(0, 1e6)");
        return (await list().getByRole('link').count()) === conversationCount;
      }, 'all conversations to be listed');
      await ask.ask('One more');
      await entry('One more').getByText('2 messages').waitFor();
      await untilCount(list().getByRole('link'), conversationCount + 1);
    });

    it('groups the list by days, and sets the tab title to the conversation', async () => {
      await openConsole(browser, service, '/ask');
      await has('document.title', 'Ask · prompt-relay');
      await ask.ask('My name is Ada');
      await has('document.title', 'My name is Ada · prompt-relay');
      const days = [0, 1, 1, 4, 20];
      await browser.page.route('**/chat?limit=*', async (route) => {
        const response = await route.fetch();
        const { conversations, ...rest } = (await response.json()) as { conversations: object[] };
        const moved = conversations.slice(0, days.length).map((one, index) => {
          return { ...one, last_activity_at: new Date(Date.now() - (days[index] ?? 0) * dayMs).toISOString() };
        });
        await route.fulfill({ json: { ...rest, conversations: moved, next_cursor: null } });
      });
      await browser.page.reload();
      await list().getByRole('heading', { name: 'Yesterday' }).waitFor();
      const headings = await list().getByRole('heading').allInnerTexts();
      expect(headings).toEqual(['Today', 'Yesterday', 'Previous 7 days', 'Previous 30 days']);
      await browser.page.unroute('**/chat?limit=*');
      await browser.page.getByRole('link', { name: 'Usage' }).click();
      await has('document.title', 'Usage · prompt-relay');
      await browser.page.getByRole('link', { name: 'Ask', exact: true }).click();
      await has('document.title', 'My name is Ada · prompt-relay');
      await ask.answer();
    });

    it('selects the model of an opened conversation', async () => {
      const [echo, eliza] = [await talk('To echo'), await talk('To Eliza', 'eliza')];
      const model = "document.querySelector('.model').value || 'the default'";
      await openConsole(browser, service, `/ask?conversation=${echo}`);
      await has(model, 'echo');
      await entry('To Eliza').getByRole('link').click();
      await has(model, 'the default');
      await has(hash, `#/ask?conversation=${eliza}`);
    });

    it('folds the thoughts of the model above its answer, also in a background job', async () => {
      await openConsole(browser, service, '/ask');
      await ask.send('My name is Ada.\nthink Ada is a name.');
      const folded = (answer: Locator) => answer.locator('details.thoughts:not([open])');
      const answer = ask.lastAnswer;
      await folded(answer).getByText('Thoughts', { exact: true }).waitFor();
      await ask.answer();
      expect(await folded(answer).getByText('Ada is a name.').isVisible()).toBe(false);
      await answer.getByText('Thoughts', { exact: true }).click();
      await answer.getByText('Ada is a name.').waitFor();
      expect(await answer.locator('details.thoughts + *').innerText()).toContain('Nice to meet you, Ada.');
      expect(await ask.ask('My name is Bob')).not.toContain('Thoughts');
      await ask.message.fill('My name is Ada.\nthink Ada is a name.');
      await press('Ask in the background');
      const job = browser.page.locator('article.answer');
      await folded(job).getByText('Thoughts', { exact: true }).waitFor();
      await job.getByText('Nice to meet you, Ada.').waitFor();
      await expectGoodLooks(browser.page, 'thoughts');
    });

    it('does not apply the options of one conversation to the next', async () => {
      await openConsole(browser, service, '/ask');
      await press('Options');
      await ask.page.getByLabel('Answer format (JSON Schema)').fill(schema);
      await ask.page.getByLabel('System text').fill('Be brief.');
      await ask.ask('My name is Ada');
      const chip = ask.page.getByRole('button', { name: 'Remove: JSON Schema' });
      await chip.waitFor();
      await expectGoodLooks(ask.page, 'ask-chips', ['narrow']);
      await ask.page.setViewportSize({ width: 1280, height: 800 });
      await ask.message.fill('Typed before');
      await press('New conversation');
      await ask.turns.first().waitFor({ state: 'detached' });
      await chip.waitFor({ state: 'detached' });
      await untilValue(ask.message, 'Typed before');
      await ask.button(/^Options$/).waitFor();
      const [request] = await Promise.all([ask.page.waitForRequest('**/chat'), ask.send('Who am I?')]);
      expect(request.postDataJSON()).toEqual({ message: 'Who am I?', thoughts: true });
      await ask.answer();
      await press('Options');
      await ask.page.getByLabel('Answer format (JSON Schema)').fill(schema);
      await ask.page.keyboard.press('Escape');
      await chip.click();
      await ask.button(/^Options$/).waitFor();
      await has(focused, 'Message');
    });

    it('returns the focus after dialogs, renaming and deletion', async () => {
      await Promise.all(['First to go', 'Second to go'].map((title) => talk(title)));
      await openConsole(browser, service, '/ask');
      const { keyboard } = browser.page;
      const button = (act: string) => entry('Second to go').getByRole('button', { name: new RegExp(`^${act}`) });
      await button('Save').focus();
      await keyboard.press('Enter');
      await browser.page.getByRole('dialog').waitFor();
      await keyboard.press('Escape');
      await has(focused, /^Save or share “Second to go/);
      await button('Rename').focus();
      await keyboard.press('Enter');
      await has(focused, 'Title');
      await keyboard.press('End');
      await keyboard.type(' soon');
      await keyboard.press('Escape');
      await has(focused, /^Second to go/);
      await button('Rename').press('Enter');
      await has('document.activeElement.value', /^Second to go.* soon$/);
      await keyboard.press('Enter');
      await has(focused, /^Second to go.* soon/);
      await button('Delete').press('Enter');
      await browser.page.getByRole('button', { name: 'Delete', exact: true, disabled: false }).press('Enter');
      await entry('Second to go').waitFor({ state: 'detached' });
      await has(`document.activeElement.closest('.talks li') !== null`, 'true');
    });

    it('sends an edited message with Ctrl+Enter, and Escape discards no text', async () => {
      await openConsole(browser, service, '/ask');
      await ask.ask('One');
      await ask.turns.first().hover();
      await ask.turns.first().getByRole('button', { name: 'Edit' }).press('Enter');
      await has(focused, 'Your question');
      await ask.page.keyboard.press('End');
      await ask.page.keyboard.type(' and two');
      await ask.page.keyboard.press('Escape');
      await has(focused, 'Edit (not sent)');
      await ask.page.keyboard.press('Enter');
      const field = ask.page.getByLabel('Your question');
      await untilValue(field, 'One and two');
      await field.press('Control+Enter');
      await ask.turns.getByText('One and two', { exact: true }).waitFor();
      await has(focused, 'Message');
      await press('Options');
      await ask.page.getByLabel('System text').waitFor();
      await ask.page.keyboard.press('Escape');
      await ask.page.getByLabel('System text').waitFor({ state: 'detached' });
      await ask.answer();
    });

    it('jumps to the end of a long conversation', async () => {
      await openConsole(browser, service, '/ask');
      await ask.page.getByLabel('Model', { exact: true }).selectOption('echo');
      await ask.ask('A line\n\n'.repeat(80));
      const jump = ask.button('Jump to the end');
      await jump.waitFor({ state: 'detached' }); // the page follows the answer
      await ask.page.evaluate('scrollTo(0, 0)');
      await jump.click();
      await jump.waitFor({ state: 'detached' });
      await has(isAtEnd, 'true');
    });

    it('renders formulas without dollar signs, and HTML entities', async () => {
      await openConsole(browser, service, '/ask');
      await ask.page.getByLabel('Model', { exact: true }).selectOption('echo');
      await ask.ask(
        'So\n\n\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}\n\nand $a &lt; b$, 1 &lt; 2 &le; 3.\n\n<p>x &lt; y</p>',
      );
      await ask.lastAnswer.locator('math').nth(1).waitFor();
      const text = await ask.lastAnswer.innerText();
      expect(text).not.toMatch(/&\w+;|begin\{/);
      expect(text).toMatch(/1 < 2 ≤ 3\.[\s\S]*<p>x < y<\/p>/);
    });
  });

  describe('with a running answer', () => {
    beforeAll(async () => {
      service = await startWithProgram(script('begins-and-waits.pl'));
    });
    afterAll(() => service.stop());
    afterEach(() => clearAway(service));

    it('is in the list at once, and remains reachable with all other running answers', async () => {
      await openConsole(browser, service, '/ask');
      for (const title of ['wait for one', 'wait for two']) {
        await ask.send(title);
        await entry(title).getByText('Answering').waitFor();
        await has('document.title', `${title} · prompt-relay`);
        await press('New conversation');
        await has(hash, '#/ask');
        await ask.turns.first().waitFor({ state: 'detached' });
      }
      await untilJobs(service, 2, 0);
      await expectGoodLooks(ask.page, 'ask-answering');
      for (const title of ['wait for one', 'wait for two']) {
        await entry(title).getByRole('link').click();
        await ask.turns.getByText(title, { exact: true }).waitFor();
        await ask.lastAnswer.getByText(/Answering · \d+ s/).waitFor();
      }
      await ask.page.goBack(); // back to the first conversation
      await ask.turns.getByText('wait for one', { exact: true }).waitFor();
      await press('Stop');
      await has(focused, 'Message');
      await ask.lastAnswer.getByText('Stopped.').waitFor();
      await untilJobs(service, 1, 0);
      await entry('wait for two').getByRole('link').click();
      await press('Stop');
      await ask.lastAnswer.getByText('Stopped.').waitFor();
      expectClean(browser, service);
    });

    it('is identified by its address, and the address without an id starts a new conversation', async () => {
      await openConsole(browser, service, '/ask');
      await ask.ask('go on');
      await has(hash, /conversation=/);
      await ask.page.getByRole('link', { name: 'Now', exact: true }).click();
      await ask.page.getByRole('link', { name: 'Ask', exact: true }).click();
      await has(hash, /conversation=/);
      await untilCount(ask.turns, 1);
      await ask.page.getByRole('link', { name: 'prompt-relay', exact: true }).click();
      await has(hash, '#/ask');
      await ask.page.getByText('Ask the model').waitFor();
      await ask.page.goBack();
      await ask.turns.getByText('go on', { exact: true }).waitFor();
      await ask.page.goto(`${service.url}/console/`);
      await ask.page.getByText('Ask the model').waitFor();
      await untilCount(ask.turns, 0);
      expectClean(browser, service);
    });
  });

  it('reports that it has expired', async () => {
    service = await startService({ env: { MODEL_API_CONVERSATION_TTL_SECONDS: '1' } });
    await using _ = service;
    await openConsole(browser, service, '/ask');
    await ask.ask('My name is Ada');
    const id = await ask.conversationId();
    const address = ask.page.url();
    await until(async () => (await service.get(`/chat/${id}`)).status === 404, 'the conversation to expire');
    await ask.send('What is my name?');
    await ask.page.getByText('This conversation has expired').waitFor();
    await expectGoodLooks(ask.page, 'ask-expired');
    await ask.page.goto(`${service.url}/version`);
    await ask.page.goto(address);
    await ask.page.getByText('This one has expired, was deleted, or belongs to another client.').waitFor();
    expectClean(browser, service, /status of 40[04]/);
  });
});
