import { readFile } from 'node:fs/promises';
import { type Browser, isFirefox, startBrowser } from '../../support/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/console.js';
import { enterKey, headersOf, keyOf, writeNamedKeys } from '../../support/named-keys.js';
import { type Service, startService } from '../../support/service.js';

describe('The page Conversations', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  const list = () => browser.page.getByRole('navigation', { name: 'Conversations' });
  const open = () => browser.page.getByRole('region', { name: 'Conversation', exact: true });
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
    const download = browser.page.waitForEvent('download');
    await press(`Save as ${format}`);
    const file = await download;
    return { name: file.suggestedFilename(), text: await readFile(await file.path(), 'utf8') };
  }

  /** Firefox reports no download through WebDriver BiDi here. */
  async function expectSaved(id: string): Promise<void> {
    const markdown = await saved('Markdown');
    expect(markdown.name).toBe(`conversation-${id}.md`);
    expect(markdown.text).toContain('with **weight**');
    const json = await saved('JSON');
    expect(json.name).toBe(`conversation-${id}.json`);
    expect((JSON.parse(json.text) as { messages: unknown[] }).messages).toHaveLength(6);
  }

  it('lists them page by page, and says where there are none', async () => {
    await using service = await startService();
    await openConsole(browser, service, '/conversations');
    await browser.page.getByText('No conversations').waitFor();
    await expectGoodLooks(browser.page, 'conversations-none');
    for (let number = 1; number <= 32; number++) await talk(service, `Talk ${number}`);
    await openConsole(browser, service, '/conversations');
    await list().getByText('Talk 32', { exact: true }).waitFor();
    expect(await list().getByRole('link').count()).toBe(30);
    await press('Show more');
    await list().getByText('Talk 1', { exact: true }).waitFor();
    expect(await list().getByRole('link').count()).toBe(32);
    expectClean(browser, service);
  });

  it('reads one back, saves it, forks it, goes on with it, and deletes it', async () => {
    await using service = await startService();
    const id = await talk(service, '# First\n\nwith **weight** and `code`', 'Second', 'Third');
    await talk(service, 'Another one');
    await openConsole(browser, service, '/conversations');
    await list().getByText('# First with **weight**').click();
    await open().locator('.markdown strong', { hasText: 'weight' }).waitFor();
    expect(await open().getByRole('article').count()).toBe(6);
    await expectGoodLooks(browser.page, 'conversations-open');
    if (!isFirefox) await expectSaved(id);
    await press('Fork from here, after message 4');
    await browser.page.getByText('Copied to a new conversation.').waitFor();
    await open().getByText('4 messages').waitFor();
    expect(await open().innerText()).not.toContain('Third');
    await list().getByRole('link').nth(2).waitFor();
    await press('Delete');
    await expectGoodLooks(browser.page, 'conversations-delete');
    await press('Keep it');
    await press('Delete');
    await press('Delete it');
    await browser.page.getByText('The conversation is deleted.').waitFor();
    expect(await list().getByRole('link').count()).toBe(2);
    expect((await service.get(`/chat/${id}`)).status).toBe(200);
    await list().getByText('# First').click();
    await open().getByRole('link', { name: 'Continue' }).click();
    await browser.page.getByRole('textbox', { name: 'Message' }).waitFor();
    await browser.page.locator('.turn').nth(2).waitFor();
    expectClean(browser, service);
  });

  it('shows those of one’s own key only, and says so where one is not there', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: keys.env });
    const { body } = await service.post('/chat', { message: 'A secret of Alice', model: 'echo' }, headersOf('alice'));
    await service.post('/chat', { message: 'From Bob', model: 'echo' }, headersOf('bob'));
    await openConsole(browser, service, `/conversations?id=${body.conversation_id}`);
    await enterKey(browser.page, keyOf('bob'));
    await list().getByText('From Bob').waitFor();
    await browser.page.getByText('Not found').waitFor();
    expect(await browser.page.locator('main').innerText()).not.toContain('Alice');
    expectClean(browser, service, /status of 40[14]/);
  });

  it('says so where the operator does not let conversations be read back', async () => {
    await using service = await startService({ env: { MODEL_API_READ_BACK: 'false' } });
    await openConsole(browser, service, '/conversations');
    await browser.page.getByText('Conversations are not shown here').waitFor();
    await browser.page.getByText('MODEL_API_READ_BACK is false').waitFor();
    await expectGoodLooks(browser.page, 'conversations-off');
    expectClean(browser, service, /status of 403/);
  });
});
