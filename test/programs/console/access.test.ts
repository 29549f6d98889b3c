import { freePort } from '../../support/basics/free-port.js';
import { AskPage } from '../../support/clients/ask-page.js';
import { startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { enterKey, forgetKey, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { startService } from '../../support/service/service.js';

const key = 'a-key-of-this-test';

describe('The API key in the console', () => {
  it('is requested once, and again if it is rejected, and is stored in the tab only', async () => {
    await using service = await startService({ env: { MODEL_API_KEY: key } });
    await using browser = await startBrowser();
    const ask = new AskPage(browser.page);
    await openConsole(browser, service);
    await ask.send('Hello, my name is Ada');
    const field = ask.page.getByLabel('Your key');
    await field.waitFor();
    await ask.lastAnswer.getByText('Waiting for your key').waitFor();
    expect(await ask.lastAnswer.getByText(/^Sent/).count()).toBe(0);
    await expectGoodLooks(ask.page, 'key');
    await ask.page.keyboard.type('another-key-than-that'); // the field has the focus
    await ask.page.keyboard.press('Enter');
    await ask.page.getByText('The service rejected this key.').waitFor();
    await field.fill(key);
    await ask.button('Continue').click();
    expect(await ask.answer()).toContain('Ada');
    await ask.page.reload();
    expect(await ask.ask('What is my name?')).toContain('Ada');
    await ask.button('Code').click();
    const code = await ask.page.getByRole('dialog').innerText();
    expect(code).toContain('os.environ["MODEL_API_KEY"]');
    expect(code).not.toContain(key);
    await ask.button('Close').click();
    expect(await ask.page.evaluate('[localStorage.length, document.cookie, location.href]')).toEqual([
      0,
      '',
      expect.not.stringContaining(key),
    ]);
    await ask.message.fill('Do you still know me?'); // the draft is removed with the key
    await forgetKey(ask.page);
    expect(await ask.message.inputValue()).toBe('');
    expect(await ask.page.evaluate('sessionStorage.length')).toBe(0);
    expectClean(browser, service, /status of 401/);
  });

  it('may be left out: the request fails, and can be sent again', async () => {
    await using service = await startService({ env: { MODEL_API_KEY: key } });
    await using browser = await startBrowser();
    const ask = new AskPage(browser.page);
    await openConsole(browser, service);
    await ask.send('Hello');
    await ask.page.getByLabel('Your key').waitFor();
    await ask.page.keyboard.press('Escape');
    await ask.lastAnswer.getByText('API key required', { exact: true }).waitFor();
    await ask.button('Retry').click();
    await ask.page.getByLabel('Your key').fill(key);
    await ask.page.keyboard.press('Enter');
    expect(await ask.answer()).not.toBe('');
    expectClean(browser, service, /status of 401/);
  });
});

describe('The header of the console', () => {
  it('shows the client, asks for a key, and forgets it', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: keys.env });
    await using browser = await startBrowser();
    const { page } = browser;
    await openConsole(browser, service, '/ask');
    await page.getByRole('button', { name: 'Sign in with your API key' }).click();
    await enterKey(page, keyOf('alice'));
    await page.getByRole('button', { name: 'You: alice' }).click();
    await page.getByText('API key', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Keys', exact: true }).waitFor({ state: 'detached' }); // alice may manage none
    await expectGoodLooks(page, 'who');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Forget the key' }).waitFor({ state: 'hidden' });
    await page.goto(`${service.url}/console/now`); // entered in the address bar
    await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
    expect(page.url()).toBe(`${service.url}/console/#/now`);
    await page.reload();
    await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
    await forgetKey(page);
    await page.getByText('This service requires an API key.').waitFor();
    await enterKey(page, keyOf('bob'));
    await page.getByRole('button', { name: 'You: bob' }).waitFor();
    expectClean(browser, service, /status of 401/);
  });

  it('shows the client address if the service needs no key', async () => {
    await using service = await startService();
    await using browser = await startBrowser();
    await openConsole(browser, service, '/usage');
    const { caller } = (await service.get('/usage')).body as { caller: { client: string } };
    await browser.page.getByRole('button', { name: `You: ${caller.client}` }).click();
    await browser.page.getByText('none: the service needs no key').waitFor();
    expect(await browser.page.getByRole('button', { name: 'Forget the key' }).count()).toBe(0);
    expectClean(browser, service);
  });
});

describe('A service that stops and starts again', () => {
  it('is reported as down while it is stopped, and can be asked again without a reload', async () => {
    await using browser = await startBrowser();
    const ask = new AskPage(browser.page);
    const env = { MODEL_API_PORT: String(await freePort()) };
    await using first = await startService({ env });
    await openConsole(browser, first);
    await ask.ask('Hello');
    await first.stop();
    await ask.send('Are you there?');
    const banner = ask.page.getByText('Connection lost. Reconnecting');
    await banner.waitFor();
    await ask.lastAnswer.getByText(/Sent · [1-9]\d* s/).waitFor();
    await expectGoodLooks(ask.page, 'gone');
    await ask.page.setViewportSize({ width: 360, height: 400 });
    await ask.page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    expect(await ask.page.evaluate('scrollY')).toBeGreaterThan(100);
    expect((await banner.boundingBox())?.y).toBeGreaterThan(0); // visible at any scroll position
    await using second = await startService({ env });
    await banner.waitFor({ state: 'detached' });
    await ask.page.getByText('Not found: this conversation has probably expired').waitFor(); // it was sent again
    await ask.button('New conversation').first().click();
    await ask.turns.first().waitFor({ state: 'detached' });
    expect(await ask.ask('Hello, my name is Ada')).toContain('Ada');
    expectClean(browser, second, /ERR_CONNECTION_REFUSED|status of 40[04]/);
  });
});
