import { readFile } from 'node:fs/promises';
import { until } from '../../support/basics/until.js';
import { AskPage } from '../../support/clients/ask-page.js';
import { type Browser, isFirefox, startBrowser } from '../../support/clients/browser.js';
import {
  expectClean,
  expectGoodLooks,
  openConsole,
  untilCount,
  untilEvaluates,
} from '../../support/clients/console.js';
import { enterKey, headersOf, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, startService } from '../../support/service/service.js';

describe('Conversations', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });
  beforeEach(() => browser.page.setViewportSize({ width: 1280, height: 800 }));
  afterAll(() => browser[Symbol.asyncDispose]());

  const list = () => browser.page.getByRole('navigation', { name: 'Conversations' });
  const press = (name: string) => browser.page.getByRole('button', { name, exact: true }).click();

  async function talk(service: Service, ...messages: readonly string[]): Promise<string> {
    let id: string | undefined;
    for (const message of messages) {
      const { body } = await service.post('/chat', { message, model: 'echo', ...(id && { conversation_id: id }) });
      id = body.conversation_id as string;
    }
    return id ?? '';
  }

  async function saved(format: string): Promise<{ name: string; text: string }> {
    await row('First').getByRole('button', { name: /^Save/ }).click();
    if (format === 'Markdown') await expectGoodLooks(browser.page, 'conversations-save');
    const download = browser.page.waitForEvent('download');
    await press(`Save as ${format}`);
    const file = await download;
    return { name: file.suggestedFilename(), text: await readFile(await file.path(), 'utf8') };
  }

  /** Firefox does not report downloads through WebDriver BiDi here. */
  async function expectSaved(id: string): Promise<void> {
    const markdown = await saved('Markdown');
    expect(markdown.name).toBe(`conversation-${id}.md`);
    expect(markdown.text).toContain('with **weight**');
    const json = await saved('JSON');
    expect(json.name).toBe(`conversation-${id}.json`);
    expect((JSON.parse(json.text) as { messages: unknown[] }).messages).toHaveLength(6);
    await expectImported(id, json.text);
  }

  /** Imports a saved conversation, and removes it again. */
  async function expectImported(id: string, text: string): Promise<void> {
    const { page } = browser;
    const importFile = (content: string) =>
      page
        .getByLabel('File of a conversation')
        .setInputFiles({ name: 'a.json', mimeType: 'application/json', buffer: Buffer.from(content) });
    await importFile('Hello');
    await page.getByText('this file is no conversation that was saved as JSON').waitFor();
    await importFile('{"messages":[]}');
    await page.getByText('must have a message of the user and an answer').waitFor();
    await expectGoodLooks(page, 'conversations-import', ['wide']);
    await importFile(text);
    await page.waitForURL((url) => /conversation=/.test(url.hash) && !url.hash.includes(id));
    await page.locator('.turn').nth(2).waitFor();
    await untilCount(row('First'), 2);
    await current('First').waitFor();
    await row('First')
      .filter({ has: page.locator('[aria-current=true]') })
      .getByRole('button', { name: /^Delete/ })
      .click();
    await press('Delete');
    await untilCount(row('First'), 1);
    await row('First').getByRole('link').click();
  }

  /** Copies the address of the conversation. It opens the same conversation. */
  async function expectLink(id: string): Promise<void> {
    const { page } = browser;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await row('First')
      .getByRole('button', { name: /^Save or share/ })
      .click();
    await press('Copy link');
    await press('Copied');
    const address = String(await page.evaluate('navigator.clipboard.readText()'));
    await page.keyboard.press('Escape');
    expect(address).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:\\d+/console/#/ask\\?conversation=${id}$`));
    await page.goto('about:blank');
    await page.goto(address);
    await page.locator('.turn').nth(2).waitFor();
  }

  const current = (title: string) => list().locator('[aria-current=true]', { hasText: title });
  const row = (title: string | RegExp) => list().locator('li').filter({ hasText: title });

  it('are listed next to the chat, page by page, and found by words of the title on any page', async () => {
    await using service = await startService();
    await openConsole(browser, service, '/ask');
    await browser.page.getByText('Your conversations appear here.').waitFor();
    for (let number = 1; number <= 32; number++) await talk(service, `Talk ${number}`);
    await openConsole(browser, service, '/ask');
    await list().getByText('Talk 32', { exact: true }).waitFor();
    await browser.page.getByLabel('Search conversations').fill('TALK 1');
    await list().getByText('Talk 32', { exact: true }).waitFor({ state: 'detached' });
    await list().getByText('Talk 1', { exact: true }).waitFor();
    await untilCount(list().getByRole('link'), 13); // 1, 10 to 19, 21 and 31
    await browser.page.getByLabel('Search conversations').fill('nothing');
    await browser.page.getByText('Nothing found in the titles and messages of your conversations.').waitFor();
    await browser.page.getByLabel('Search conversations').fill('');
    await list().getByRole('link').last().scrollIntoViewIfNeeded();
    await list().getByText('Talk 1', { exact: true }).waitFor();
    await untilCount(list().getByRole('link'), 32);
    expectClean(browser, service);
  });

  it('are found by words of their messages in any order, and open at the message with the words', async () => {
    await using service = await startService();
    await talk(service, 'Another one');
    const id = await talk(
      service,
      'About bread',
      'A line\n\n'.repeat(40),
      `${'Oven. '.repeat(9)}It is of STONE`,
      'More\n\n'.repeat(60),
    );
    await openConsole(browser, service, '/ask');
    await browser.page.getByLabel('Search conversations').fill('stone  BREAD');
    await row('Another one').waitFor({ state: 'detached' });
    await row('About bread').locator('mark', { hasText: 'STONE' }).waitFor();
    await row('About bread')
      .locator('mark', { hasText: /^bread$/ })
      .waitFor();
    await expectGoodLooks(browser.page, 'conversations-found', ['wide']);
    const found = browser.page.locator('.asked', { hasText: 'STONE' });
    const isSeen = () =>
      until(async () => {
        const { y = -1 } = (await found.boundingBox()) ?? {};
        return y > 50 && y < 300;
      }, 'the found message to be at the top of the page');
    await row('About bread').getByRole('link').click();
    await isSeen();
    await browser.page.evaluate('scrollTo(0, 0)');
    await row('About bread').getByRole('link').click();
    await isSeen();
    expect(await browser.page.evaluate('location.hash')).toContain(id);
    await new AskPage(browser.page).ask('The last message');
    await untilEvaluates(browser.page, 'innerHeight + scrollY >= document.documentElement.scrollHeight - 60', 'true');
    expectClean(browser, service);
  });

  it('open with a click, are renamed in place, saved and deleted', async () => {
    await using service = await startService();
    const id = await talk(service, '# First\n\nwith **weight** and `code`', 'Second', 'Third');
    await talk(service, 'Another one');
    await openConsole(browser, service, '/ask');
    await list().getByText('First with weight').click();
    await browser.page.locator('.turn').nth(2).waitFor();
    await browser.page.waitForURL(`**/*conversation=${id}*`);
    await current('First').waitFor();
    await row('First').hover();
    await expectGoodLooks(browser.page, 'conversations-open');
    await row('First')
      .getByRole('button', { name: /^Rename/ })
      .click();
    const field = browser.page.getByLabel('Title', { exact: true });
    await field.fill('Left');
    await field.press('Escape');
    await row('First')
      .getByRole('button', { name: /^Rename/ })
      .click();
    await field.fill('  Weights ');
    await field.press('Enter');
    await row('Weights').waitFor();
    expect((await service.get(`/chat/${id}`)).body.title).toBe('Weights');
    await row('Weights')
      .getByRole('button', { name: /^Rename/ })
      .click();
    await expectGoodLooks(browser.page, 'conversations-rename', ['wide']);
    await field.fill('');
    await field.press('Enter');
    await row('First').waitFor();
    if (!isFirefox) await expectSaved(id);
    if (!isFirefox) await expectLink(id);
    await row('First')
      .getByRole('button', { name: /^Delete/ })
      .click();
    await expectGoodLooks(browser.page, 'conversations-delete');
    await press('Cancel');
    await row('First')
      .getByRole('button', { name: /^Delete/ })
      .click();
    await press('Delete');
    await row('First').waitFor({ state: 'detached' });
    await browser.page.getByText('Ask the model').waitFor();
    await untilCount(list().getByRole('link'), 1);
    expect((await service.get(`/chat/${id}`)).status).toBe(404);
    expectClean(browser, service, /status of 400/); // imports that were refused
  });

  it('are behind a button on a narrow page', async () => {
    await using service = await startService();
    await talk(service, 'The first one');
    await openConsole(browser, service, '/ask');
    await browser.page.setViewportSize({ width: 360, height: 740 });
    await press('Conversations');
    await list().getByText('The first one').waitFor();
    await expectGoodLooks(browser.page, 'conversations-drawer', ['narrow']);
    await list().getByText('The first one').click();
    await browser.page.getByRole('dialog').waitFor({ state: 'detached' });
    await browser.page.locator('.turn').first().waitFor();
    expectClean(browser, service);
  });

  it('have versions for an edited message, another answer and a branch, which arrows open in place', async () => {
    await using service = await startService();
    const ask = new AskPage(browser.page);
    const id = await talk(service, 'One', 'Two', 'Three');
    await openConsole(browser, service, `/conversations?id=${id}`); // address of an earlier version
    await browser.page.getByLabel('Model', { exact: true }).selectOption('echo');
    await ask.turns.nth(2).waitFor();
    const edit = async (turn: number, text: string) => {
      await ask.turns.nth(turn).getByRole('button', { name: 'Edit' }).click();
      await browser.page.getByLabel('Your question').fill(text);
    };
    const pager = browser.page.getByRole('group', { name: 'Versions of this message' });
    const shows = (version: string, turns: number) =>
      until(async () => {
        const shown = await pager.getByRole('status').allInnerTexts();
        return (
          shown.map((text) => text.replace(/[^\d/]/g, '')).join() === version && (await ask.turns.count()) === turns
        );
      }, `version ${version} with ${turns} turns`);
    await edit(1, 'Two, but other');
    await expectGoodLooks(browser.page, 'conversations-edit');
    await press('Send edit');
    await shows('2/2', 2);
    expect(await ask.answer()).toContain('Two, but other');
    expect((await service.get(`/chat/${id}`)).body.message_count).toBe(6);
    await browser.page.setViewportSize({ width: 1280, height: 420 }); // the page must scroll
    await browser.page.evaluate('scrollTo(0, 1e6)');
    await ask.button('Previous version').hover(); // Playwright scrolls it away from the header
    const y = async () => Math.round((await pager.boundingBox())?.y ?? 0);
    const before = await y();
    await press('Previous version');
    await shows('1/2', 3);
    await until(async () => (await y()) === before, 'the arrow to stand where it stood');
    await browser.page.setViewportSize({ width: 1280, height: 800 });
    await ask.turns.getByText('Three', { exact: true }).first().waitFor();
    expect(browser.page.url()).toContain(id);
    const hasFocus = (label: string) => untilEvaluates(browser.page, 'document.activeElement.ariaLabel', label);
    await hasFocus('Previous version');
    await browser.page.keyboard.press('Enter'); // there is no earlier version
    await browser.page.keyboard.press('Tab');
    await browser.page.keyboard.press('Enter');
    await shows('2/2', 2);
    await hasFocus('Next version');
    await press('Retry');
    await shows('3/3', 2);
    expect(await ask.answer()).toContain('Two, but other');
    await expectGoodLooks(browser.page, 'conversations-versions');
    await ask.turns.first().getByRole('button', { name: 'Branch here' }).click();
    await shows('4/4', 1);
    await press('Previous version');
    await shows('3/4', 2);
    await edit(0, 'One, but other');
    await press('Send edit');
    await shows('2/2', 1);
    expect(await ask.answer()).toContain('One, but other');
    await browser.page.reload();
    await shows('2/2', 1);
    await current('One, but other').waitFor();
    await untilCount(list().getByRole('link'), 1);
    await row('One')
      .getByRole('button', { name: /^Rename/ })
      .click();
    await browser.page.getByLabel('Title', { exact: true }).fill('Numbers');
    await press('Save');
    await row('Numbers').waitFor();
    expect((await service.get(`/chat/${id}`)).body.title).toBe('Numbers');
    await press('Previous version');
    await shows('1/2,4/4', 1); // the branch is the newest conversation with this first message
    await current('Numbers').waitFor();
    await service.delete(`/chat/${id}`);
    await pager.first().getByRole('button', { name: 'Next version' }).click();
    await shows('2/2', 1);
    await row('Numbers')
      .getByRole('button', { name: /^Delete/ })
      .click();
    await browser.page.getByText('in 4 versions').waitFor();
    await press('Delete all 4 versions');
    await browser.page.getByText('Your conversations appear here.').waitFor();
    await browser.page.getByText('Ask the model').waitFor();
    expect((await service.get('/chat')).body.conversations).toEqual([]);
    expectClean(browser, service);
  });

  it('are only those of the client, and the page requires no key to list them', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: keys.env });
    const { body } = await service.post('/chat', { message: 'A secret of Alice', model: 'echo' }, headersOf('alice'));
    await service.post('/chat', { message: 'From Bob', model: 'echo' }, headersOf('bob'));
    await openConsole(browser, service, '/ask');
    await browser.page.getByText('Sign in with your API key to see your conversations.').waitFor();
    await openConsole(browser, service, `/ask?conversation=${body.conversation_id}`);
    await enterKey(browser.page, keyOf('bob'));
    await list().getByText('From Bob').waitFor();
    await browser.page.getByText('Not found').waitFor();
    expect(await browser.page.locator('main').innerText()).not.toContain('Alice');
    expectClean(browser, service, /status of 40[14]/);
  });

  it('are not listed if the operator disables reading them', async () => {
    await using service = await startService({ env: { MODEL_API_READ_BACK: 'false' } });
    await openConsole(browser, service, '/ask');
    await browser.page.getByText('This service does not list conversations.').waitFor();
    expectClean(browser, service, /status of 403/);
  });
});
