import { describeWith } from '../../support/basics/needs.js';
import { type Browser, browserProgram, isFirefox, startBrowser } from '../../support/clients/browser.js';
import { untilEvaluates, violationsOf } from '../../support/clients/console.js';
import { allDoorEndpoints, nativeEndpoints } from '../../support/documents/tables.js';
import { type Service, startService } from '../../support/service/service.js';

const all = [...nativeEndpoints, ...allDoorEndpoints];

const limitMs = 30_000;

/** Opens the page with every operation expanded. */
async function openDocs(browser: Browser, service: Service): Promise<void> {
  browser.page.setDefaultTimeout(limitMs);
  await browser.page.goto(`${service.url}/docs`);
  await browser.page
    .locator('.opblock')
    .nth(all.length - 1)
    .waitFor();
}

/** Returns the problems that axe finds, except moderate ones of Swagger's own elements. */
async function faultsOf({ page }: Browser): Promise<string[]> {
  return (await violationsOf(page)).filter((violation) => !/^(heading-order|region):/.test(violation));
}

/** Presses "Execute" on an operation with the proposed request. Returns what the page shows. */
async function tryOut({ page }: Browser, operation: string) {
  const block = page.locator(`.opblock[id$="-${operation}"]`);
  await block.locator('.opblock-summary-control').click();
  await block.locator('button.execute').click();
  const answer = block.locator('.live-responses-table');
  await answer.locator('.response-col_status', { hasText: /\d/ }).waitFor();
  const status = await answer.locator('tbody .response-col_status').innerText();
  return { status: status.trim(), text: await answer.locator('.highlight-code').first().innerText() };
}

/** Expects no request to another server, and no violation of the page's content security policy. */
function expectClean({ requests, complaints }: Browser, service: Service): void {
  expect(complaints).toEqual([]);
  expect(requests.filter(({ origin }) => origin !== service.url).map(String)).toEqual([]);
}

describeWith(browserProgram)('The documentation page in a browser without a network', () => {
  it('shows every operation, loads nothing from other hosts, and keeps its security policy', async () => {
    await using service = await startService();
    await using browser = await startBrowser();
    await openDocs(browser, service);
    const shown = await browser.page.locator('.opblock-summary').allInnerTexts();
    expect(shown).toHaveLength(all.length);
    for (const { method, route } of all) {
      expect(
        shown.filter((text) => text.replace(/[\s\u200b]+/g, ' ').startsWith(`${method} ${route.replace(/\/$/, '')} `)),
      ).toHaveLength(1);
    }
    expect(browser.requests.map(({ pathname }) => pathname)).toContain('/openapi.yaml');
    expect(await faultsOf(browser)).toEqual([]);
    const buttons = await browser.page.locator('.opblock-summary-control').all();
    const sizes = await Promise.all(buttons.map((button) => button.boundingBox()));
    expect(sizes.filter((size) => size === null || size.height < 24 || size.width < 24)).toEqual([]);
    expect(sizes).toHaveLength(all.length);
    await browser.page.setViewportSize({ width: 360, height: 740 });
    expect(await browser.page.evaluate('innerWidth')).toBe(360); // a page without the width of the device is wider
    expectClean(browser, service);
  }, 120_000);

  it('follows the colours of the system and of the console, and leads back to the console', async () => {
    await using service = await startService();
    await using browser = await startBrowser();
    const { page } = browser;
    await page.emulateMedia({ colorScheme: 'light' });
    await openDocs(browser, service);
    const paper = 'getComputedStyle(document.body).backgroundColor';
    const light = String(await page.evaluate(paper));
    if (!isFirefox) {
      await page.emulateMedia({ colorScheme: 'dark' }); // without a reload; WebDriver BiDi cannot emulate it
      await untilEvaluates(page, paper, 'rgb(28, 32, 34)');
      await page.emulateMedia({ colorScheme: 'light' });
      await untilEvaluates(page, paper, light);
    }
    await page.getByRole('link', { name: 'Console' }).click();
    await page.getByLabel('Colours').selectOption('dark');
    await page.getByRole('link', { name: 'API', exact: true }).click();
    await page.locator('.opblock').first().waitFor();
    await untilEvaluates(page, paper, 'rgb(28, 32, 34)');
    await page.mouse.move(640, 5); // no element is hovered over
    expect(await faultsOf(browser)).toEqual([]);
    expectClean(browser, service);
  }, 120_000);

  it('sends its example requests to the model', async () => {
    await using service = await startService();
    await using browser = await startBrowser();
    await openDocs(browser, service);
    for (const operation of ['ask', 'chat']) {
      const { status, text } = await tryOut(browser, operation);
      expect({ operation, status }).toEqual({ operation, status: '200' });
      expect(text).toMatch(/"response": ".*Ada/);
    }
    expectClean(browser, service);
  }, 120_000);

  it('sends the entered API key', async () => {
    await using service = await startService({ env: { MODEL_API_KEY: 'a-key-of-this-test' } });
    await using browser = await startBrowser();
    const { page } = browser;
    await openDocs(browser, service);
    await page.locator('.auth-wrapper .authorize').click();
    await page.locator('.auth-container input').first().fill('a-key-of-this-test');
    await page.locator('.auth-container button[type=submit]').first().click();
    await page.locator('.btn-done').first().click();
    expect(await tryOut(browser, 'ask')).toMatchObject({ status: '200' });
    expectClean(browser, service);
  }, 120_000);
});
