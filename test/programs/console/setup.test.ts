import { appendFile } from 'node:fs/promises';
import { until } from '../../support/basics/until.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { anchorsOf } from '../../support/documents/anchors.js';
import { enterKey, forgetKey, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { AccountsLab } from '../../support/service/accounts-lab.js';
import { startService } from '../../support/service/service.js';

describe('The page Set-up', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  const section = (name: string) => browser.page.getByRole('region', { name, exact: true });

  it('shows the configuration to everyone if no key is configured, warnings first', async () => {
    await using service = await startService({ env: { MODEL_API_MAX_CONCURENT: '3' } });
    await openConsole(browser, service, '/setup');
    await section('Addresses').getByText(service.url).waitFor();
    expect(await section('Access').innerText()).toContain('none: requests need no key');
    expect(await section('Model CLI').innerText()).toMatch(/yes, checked in[\s\S]*demo/);
    expect(await section('Models').innerText()).toMatch(/Default\s+eliza[\s\S]*echo/);
    expect(await section('Limits').innerText()).toMatch(/Workers\s+1\s/);
    expect(await section('Use from other programs (MCP)').innerText()).toContain(
      `claude mcp add --transport http relay ${service.url}/mcp`,
    );
    expect(await section('One warning at start').innerText()).toContain('MODEL_API_MAX_CONCURENT');
    expect(await section('Use from programs for Ollama').innerText()).toContain(`export OLLAMA_HOST=${service.url}`);
    await expectGoodLooks(browser.page, 'setup');
    expectClean(browser, service);
  });

  it('links each line to the section of the documentation that explains it', async () => {
    await using service = await startService();
    await openConsole(browser, service, '/setup');
    const { page } = browser;
    const links = page.getByRole('main').getByRole('link');
    await section('Access').waitFor();
    const hrefs = await links.evaluateAll((found) => found.map((link) => link.getAttribute('href') ?? ''));
    expect(hrefs.length).toBeGreaterThan(15);
    for (const href of new Set(hrefs)) {
      const { name = '', heading } = Object.fromEntries(new URLSearchParams(href.replace(/^.*\?/, '')));
      const anchors = anchorsOf(`docs/${name}.md`);
      if (heading !== undefined) expect([href, anchors.has(heading)]).toEqual([href, true]);
    }
    await section('Processes and storage').getByRole('link', { name: 'Process isolation' }).click();
    const heading = page.getByRole('heading', { name: 'Cgroups', exact: true });
    await heading.waitFor();
    await until(async () => ((await heading.boundingBox())?.y ?? 9999) < 400, 'the page to stand at its heading');
    await expectGoodLooks(page, 'documents');
    await page.goto(`${service.url}/console/documents`); // entered in the address bar
    await page.getByRole('heading', { name: 'Documents', level: 1 }).waitFor();
    await openConsole(browser, service, '/docs?name=systemd');
    await page.getByRole('main').getByRole('link', { name: 'All documents' }).click();
    await page.getByRole('heading', { name: 'To run it' }).waitFor();
    await expectGoodLooks(page, 'documents-list');
    await page.getByRole('main').getByRole('link', { name: 'Stores', exact: false }).first().click();
    await page.getByRole('heading', { name: 'Backup', exact: true }).waitFor();
    expectClean(browser, service);
  });

  it('shows the documents of the project, such as README, below one heading', async () => {
    await using service = await startService();
    const { page } = browser;
    await openConsole(browser, service, '/docs?name=stores');
    await page.getByRole('heading', { name: 'Stores', level: 1, exact: true }).waitFor();
    expect(await page.locator('main .page:not([hidden]) h1').count()).toBe(1);
    for (const [link, title] of [
      ['README', 'prompt-relay'],
      ['CONTRIBUTING', 'Contributing'],
    ] as const) {
      await page.getByRole('link', { name: 'All documents' }).click();
      await page.getByRole('main').getByRole('link', { name: link, exact: true }).click();
      await page.getByRole('heading', { name: title, level: 1, exact: true }).waitFor();
    }
    await page.getByRole('main').getByText('docs/decisions', { exact: true }).waitFor();
    expect(await page.getByRole('main').getByRole('link', { name: 'docs/decisions' }).count()).toBe(0); // in the repository
    await expectGoodLooks(page, 'documents-contributing', ['wide']);
    expectClean(browser, service);
  });

  it('is for operators if keys are configured, and lists the keys', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: keys.env });
    await openConsole(browser, service, '/setup');
    await enterKey(browser.page, keyOf('operator'));
    await section('Access').getByText('alice').waitFor();
    expect(await section('Access').innerText()).toMatch(/3 keys; every request needs one[\s\S]*operator/);
    await expectGoodLooks(browser.page, 'setup-keys');
    await forgetKey(browser.page);
    await openConsole(browser, service, '/setup');
    await enterKey(browser.page, keyOf('alice'));
    await browser.page.getByText('This API key lacks the scope admin').waitFor();
    for (const name of ['Use from other programs (MCP)', 'Use from programs for Ollama']) {
      expect(await section(name).innerText()).toContain(service.url);
    }
    expectClean(browser, service, /status of 40[13]/);
  });

  it('shows a fault of the keys file, as the page Now does', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: keys.env });
    await appendFile(keys.env.MODEL_API_KEYS_FILE ?? '', 'nonsense\n');
    await service.log('keys_rejected');
    await openConsole(browser, service, '/setup');
    await enterKey(browser.page, keyOf('operator'));
    await section('Access').getByText('1 fault: refused, and named in the log').waitFor();
    await expectGoodLooks(browser.page, 'setup-fault');
    await openConsole(browser, service, '/now');
    await browser.page.getByText('1 fault in MODEL_API_KEYS_FILE, whose lines are refused').waitFor();
    expectClean(browser, service, /status of 401/);
  });

  it('shows all accounts to operators, and to others their own, with what to do if one needs a login', async () => {
    const people = { operator: 'scopes=ask+admin', ada: '', eve: '', bob: '' };
    await using lab = await AccountsLab.start({ team: '', ada: 'owners=key:ada jobs=2' }, people);
    const { service, folder } = lab;
    const keyOfPerson = (person: keyof typeof people) => lab.headers(person)['x-api-key'] ?? '';
    const homes = ['team', 'ada', 'lost'].map((name) => `${name} command home=${folder.path}/${name}`);
    await lab.writeText(`${homes[0]}\n${homes[1]} owners=key:ada jobs=2\n${homes[2]} owners=key:eve\n`);
    await service.log('accounts_loaded');
    await lab.ask('ada', 'hello');
    await service.post('/health/recheck', {}, lab.headers('operator'));
    await openConsole(browser, service, '/setup');
    await enterKey(browser.page, keyOfPerson('operator'));
    await section('Account team').waitFor();
    expect(await section('Account team').innerText()).toMatch(/State\s+ready[\s\S]*Quota\s+not reported yet/);
    expect(await section('Account team').innerText()).toMatch(/Serves\s+clients without an account[\s\S]*not since/);
    expect(await section('Account ada').innerText()).toMatch(/Serves\s+key ada\s+Last used\s+\d\d:\d\d:\d\d/);
    const lost = await section('Account lost').innerText();
    expect(lost).toMatch(/needs a login[\s\S]*does not exist[\s\S]*sudo prompt-relay accounts login lost/);
    await section('Account lost').getByRole('link', { name: 'To do' }).scrollIntoViewIfNeeded();
    await expectGoodLooks(browser.page, 'setup-accounts');
    for (const [person, own] of [
      ['ada', ['Account ada']],
      ['eve', ['Account lost']],
      ['bob', []],
    ] as const) {
      await forgetKey(browser.page);
      await openConsole(browser, service, '/setup');
      await enterKey(browser.page, keyOfPerson(person));
      await section('Use from other programs (MCP)').waitFor();
      const cards = browser.page.getByRole('region', { name: /^(Account|Login) / });
      const labels = () => cards.evaluateAll((found) => found.map((card) => card.getAttribute('aria-label')).join());
      await until(async () => (await labels()) === own.join(), `the cards of ${person}`);
    }
    await section('Use from other programs (MCP)').waitFor();
    expectClean(browser, service, /status of 40[13]/);
  });
});
