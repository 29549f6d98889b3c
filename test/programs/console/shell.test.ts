import { until } from '../../support/basics/until.js';
import { itInChromium, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { startService } from '../../support/service/service.js';

const maxFirstPaintBytes = 100 * 1024;

/** Expression for the focused element, and whether it or its frame has an outline. */
const focusShown = `{
  const { activeElement: focused } = document;
  const hasOutline = (element) => element !== null && getComputedStyle(element).outlineStyle !== 'none';
  const isInView = focused.getBoundingClientRect().bottom > 0;
  const name = focused.textContent.trim() || focused.ariaLabel;
  [focused.closest('footer') ? 'footer: ' + name : name, isInView && (hasOutline(focused) || hasOutline(focused.closest('.composer')))];
}`;

describe('The console in a browser', () => {
  it('loads less than 100 KiB in total, from this service only', async () => {
    await using service = await startService();
    await using browser = await startBrowser();
    let bytes = 0;
    browser.page.on('requestfinished', async (request) => {
      const { responseBodySize, responseHeadersSize } = await request.sizes();
      bytes += responseBodySize + responseHeadersSize;
    });
    await openConsole(browser, service);
    await browser.page.waitForLoadState('networkidle');
    process.stderr.write(`The first paint of the console: ${bytes} bytes in ${browser.requests.length} answers\n`);
    expect(bytes).toBeGreaterThan(20_000);
    expect(bytes).toBeLessThan(maxFirstPaintBytes);
    expectClean(browser, service);
  });

  it('shows the focus for each Tab stop on each page, up to the last link', async () => {
    await using service = await startService();
    await using browser = await startBrowser();
    await service.post('/chat', { message: 'Hello' });
    for (const place of ['/ask', '/now', '/usage', '/jobs', '/setup', '/docs']) {
      await openConsole(browser, service, place);
      await browser.page.getByRole('contentinfo').getByText('prompt-relay').waitFor();
      await browser.page.locator('.skip').focus();
      const stops = [];
      do {
        await browser.page.keyboard.press('Tab');
        stops.push((await browser.page.evaluate(focusShown)) as readonly [name: string, isShown: boolean]);
      } while (stops.at(-1)?.[0] !== 'footer: API' && stops.length < 200);
      expect([place, stops.filter(([, isShown]) => !isShown)]).toEqual([place, []]);
      expect(stops.at(-1)?.[0]).toBe('footer: API');
      expect(stops.length).toBeGreaterThan(8);
    }
  });

  it('says that an address names no page', async () => {
    await using service = await startService();
    await using browser = await startBrowser();
    await openConsole(browser, service, '/nonsense');
    await browser.page.getByRole('heading', { name: 'This page does not exist' }).waitFor();
    await browser.page.goto(`${service.url}/console/nonsense/?id=1`);
    await browser.page.getByRole('heading', { name: 'This page does not exist' }).waitFor();
    expect(await browser.page.title()).toBe('No such page · prompt-relay');
    expect(await browser.page.locator('nav [aria-current]').count()).toBe(0);
    await expectGoodLooks(browser.page, 'no-such-page');
    await browser.page.getByRole('link', { name: 'Ask the model' }).click();
    await browser.page.getByRole('heading', { name: 'Ask', exact: true }).waitFor({ state: 'attached' });
    expectClean(browser, service);
  });

  itInChromium()('prints the text of a conversation alone, with wrapped code', async () => {
    await using service = await startService();
    await using browser = await startBrowser();
    const message = `A line\n\n\`\`\`\n${'long '.repeat(80)}\n\`\`\``;
    const { body } = await service.post('/chat', { message, model: 'echo' });
    await openConsole(browser, service, `/ask?conversation=${body.conversation_id}`);
    const { page } = browser;
    await page.locator('.answer .code').waitFor();
    await page.emulateMedia({ media: 'print' });
    for (const part of ['.top', '.composer', '.history', '.bottom', '.acts']) {
      expect([part, await page.locator(part).first().isVisible()]).toEqual([part, false]);
    }
    expect(await page.locator('.answer').innerText()).toContain('A line');
    const isWide = 'document.querySelector(".answer .code pre").scrollWidth > document.documentElement.clientWidth';
    expect(await page.evaluate(isWide)).toBe(false);
  });

  it('requests only the page again on a second visit', async () => {
    await using service = await startService({ env: { MODEL_API_LOG_LEVEL: 'debug' } });
    await using browser = await startBrowser();
    const places = ['/ask', '/usage', '/ask', '/usage', '/ask'];
    for (const place of places) {
      await openConsole(browser, service, place);
      await browser.page.waitForLoadState('networkidle');
    }
    await browser.page.reload();
    await browser.page.waitForLoadState('networkidle');
    const served = (isOfPage: boolean) =>
      service.logs.flatMap(({ path }) => {
        return /^\/console\//.test(String(path)) && (path === '/console/') === isOfPage ? [path] : [];
      });
    await until(() => served(true).length === places.length + 1, 'a record of each visit');
    const files = served(false);
    expect(files.length).toBeGreaterThan(20);
    expect(files).toHaveLength(new Set(files).size);
    expectClean(browser, service);
  });
});
