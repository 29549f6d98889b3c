import { until } from '../../support/basics/until.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { anchorsOf } from '../../support/documents/anchors.js';
import { enterKey, forgetKey, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
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
    expect(await section('As a tool of other programs').innerText()).toContain(
      `claude mcp add --transport http relay ${service.url}/mcp`,
    );
    expect(await section('One warning at start').innerText()).toContain('MODEL_API_MAX_CONCURENT');
    expect(await section('For programs that speak to Ollama').innerText()).toContain(
      `export OLLAMA_HOST=${service.url}`,
    );
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
    await page.getByRole('main').getByRole('link', { name: 'All pages' }).click();
    await page.getByRole('heading', { name: 'To run it' }).waitFor();
    await expectGoodLooks(page, 'documents-list');
    await page.getByRole('main').getByRole('link', { name: 'Stores', exact: false }).first().click();
    await page.getByRole('heading', { name: 'Backup', exact: true }).waitFor();
    expectClean(browser, service);
  });

  it('is for operators if keys are configured, and lists the keys', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: keys.env });
    await openConsole(browser, service, '/setup');
    await enterKey(browser.page, keyOf('operator'));
    await section('Access').getByText('alice').waitFor();
    expect(await section('Access').innerText()).toMatch(/3 keys, one of them required[\s\S]*operator/);
    await expectGoodLooks(browser.page, 'setup-keys');
    await forgetKey(browser.page);
    await openConsole(browser, service, '/setup');
    await enterKey(browser.page, keyOf('alice'));
    await browser.page.getByText('This API key lacks the scope admin').waitFor();
    for (const name of ['As a tool of other programs', 'For programs that speak to Ollama']) {
      expect(await section(name).innerText()).toContain(service.url);
    }
    expectClean(browser, service, /status of 40[13]/);
  });
});
