import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { enterKey, keyOf } from '../../support/doors/named-keys.js';
import { type Service, startService } from '../../support/service/service.js';

describe('The page Keys', () => {
  let folder: TemporaryFolder;
  let service: Service;
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser[Symbol.asyncDispose]());
  beforeEach(async () => {
    folder = await temporaryFolder();
    const keys = join(folder.path, 'keys');
    await writeFile(keys, 'sso:ada@example.org:own_keys=2,rate=60/60\n', { mode: 0o600 });
    service = await startService({
      env: {
        MODEL_API_TRUST_PROXY: '127.0.0.1',
        MODEL_API_USER_HEADER: 'X-User',
        MODEL_API_KEYS_FILE: keys,
        MODEL_API_STATE_FOLDER: join(folder.path, 'state'),
      },
    });
  });
  afterEach(async () => {
    await service.stop();
    await folder[Symbol.asyncDispose]();
  });

  it('lets a person whom the proxy has signed on make, replace and delete a key, without a key in the console', async () => {
    const { page } = browser;
    await page.setExtraHTTPHeaders({ 'X-User': 'ada@example.org' });
    await openConsole(browser, service, '/keys');
    await page.getByRole('button', { name: 'You: ada@example.org' }).waitFor();
    await page.getByRole('heading', { name: 'No keys' }).waitFor();
    await page.getByLabel('Name').fill('laptop');
    await page.getByRole('button', { name: 'Make a key' }).click();
    const shown = page.getByRole('group', { name: 'The new key' });
    const key = (await shown.innerText()).trim();
    expect((await service.get('/usage', { 'x-api-key': key })).status).toBe(200);
    await page.getByRole('row', { name: /^laptop sso ada@example\.org ask, chat 60 requests in 60 s never/ }).waitFor();
    await expectGoodLooks(page, 'keys');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await shown.waitFor({ state: 'detached' });

    await page.getByRole('button', { name: 'Replace laptop' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replace', exact: true }).click();
    await shown.waitFor();
    expect((await shown.innerText()).trim()).not.toBe(key);
    expect((await service.get('/usage', { 'x-api-key': key })).status).toBe(401);

    await page.getByRole('button', { name: 'Delete laptop' }).click();
    expect(await page.evaluate('document.activeElement.ariaLabel')).not.toBe('Close'); // a dialog does not begin there
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('heading', { name: 'No keys' }).waitFor();
    await page.getByRole('link', { name: 'Keys', exact: true }).waitFor();
    expectClean(browser, service);
  });

  it('lets an administrator set rights, limits and expiry of a key, and marks keys that have expired', async () => {
    const lines = [`operator:sha256:${digestOf(keyOf('operator'))}:scopes=ask+admin`];
    lines.push(`old:sha256:${digestOf(keyOf('old'))}:expires=2026-01-31`, '@biology tokens=1000000/day', '');
    const path = join(folder.path, 'operator-keys');
    await writeFile(path, lines.join('\n'), { mode: 0o600 });
    const env = { MODEL_API_KEYS_FILE: path, MODEL_API_STATE_FOLDER: join(folder.path, 'other-state') };
    await using other = await startService({ env });
    const { page } = browser;
    await page.setExtraHTTPHeaders({});
    await openConsole(browser, other, '/keys');
    await enterKey(page, keyOf('operator'));
    await page.getByRole('row', { name: /^old .* expired 2026-01-31/ }).waitFor();
    await page.getByLabel('Name').fill('lab');
    await page.getByLabel('Group', { exact: true }).fill('biology');
    await page.getByLabel('Budget of tokens').fill('5000/day');
    await page.getByLabel('Rate', { exact: true }).fill('60/60');
    await page.getByLabel('Expires').fill('2999-01-31');
    await page.getByRole('checkbox', { name: /^chat/ }).uncheck();
    await page.getByRole('button', { name: 'Make a key' }).click();
    const limits = '60 requests in 60 s · 5,000 tokens a day · group biology';
    await page.getByRole('row', { name: new RegExp(`^lab (key )?operator ask ${limits} 2999-01-31`) }).waitFor();
    await expectGoodLooks(page, 'keys-admin', ['narrow']);
    const button = await page.getByRole('button', { name: 'Delete lab' }).boundingBox();
    expect((button?.x ?? 999) + (button?.width ?? 999)).toBeLessThanOrEqual(360); // a phone shows it without scrolling
    await expectGoodLooks(page, 'keys-admin');
    await page.getByRole('button', { name: 'Change lab' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByLabel('Group', { exact: true }).inputValue()).toBe('biology');
    expect(await dialog.getByRole('checkbox', { name: /^chat/ }).isChecked()).toBe(false);
    await dialog.getByRole('checkbox', { name: /^metrics/ }).check();
    await dialog.getByLabel('Budget of tokens').fill('much');
    await dialog.getByRole('button', { name: 'Change', exact: true }).click();
    await dialog.getByRole('alert').waitFor();
    await expectGoodLooks(page, 'keys-change');
    await dialog.getByLabel('Budget of tokens').fill('');
    await dialog.getByLabel('Rate', { exact: true }).fill('30/60');
    await dialog.getByRole('button', { name: 'Change', exact: true }).click();
    await page
      .getByRole('row', { name: /^lab (key )?operator ask, metrics 30 requests in 60 s · group biology 2999-01-31/ })
      .waitFor();
    expectClean(browser, other, /status of 40[01]/);
  });

  it('is not offered by a service without keys, and asks for none', async () => {
    await using other = await startService();
    const { page } = browser;
    await page.setExtraHTTPHeaders({});
    await openConsole(browser, other, '/keys');
    await page.getByRole('heading', { name: 'No keys for you' }).waitFor();
    await page.getByRole('link', { name: 'Keys', exact: true }).waitFor({ state: 'detached' });
    expect(await page.getByRole('dialog').count()).toBe(0);
    await expectGoodLooks(page, 'keys-none');
    expectClean(browser, other);
  });

  it('says why another person can make none', async () => {
    const { page } = browser;
    await page.setExtraHTTPHeaders({ 'X-User': 'eve@example.org' });
    await openConsole(browser, service, '/keys');
    await page.getByText('This needs the scope admin, or a person signed on').waitFor();
    expectClean(browser, service, /403/);
  });
});
