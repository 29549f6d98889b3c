import { AskPage } from '../../support/clients/ask-page.js';
import { startBrowser } from '../../support/clients/browser.js';
import { startPathProxy } from '../../support/service/path-proxy.js';
import { startService } from '../../support/service/service.js';

const limitMs = 30_000;

describe('Below the path prefix of a proxy', () => {
  it('the console, the documentation and the API page work, and request nothing outside the prefix', async () => {
    await using service = await startService();
    await using proxy = await startPathProxy(service.port);
    await using browser = await startBrowser();
    const { page } = browser;
    page.setDefaultTimeout(limitMs);
    await page.goto(`${proxy.url}/`);
    expect(page.url()).toBe(`${proxy.url}/console/`);
    expect(await new AskPage(page).ask('My name is Ada')).toContain('Ada');
    await page.goto(`${proxy.url}/console/now`);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('contentinfo').getByRole('link', { name: 'Documents' }).click();
    await page.getByRole('main').getByRole('link', { name: 'Stores' }).first().click();
    await page.getByRole('heading', { name: 'Backup', exact: true }).waitFor();
    await page.getByRole('contentinfo').getByRole('link', { name: 'API' }).click();
    for (const place of ['/docs/', '/docs', '/docs?x=/']) {
      await page.goto(proxy.url + place);
      const block = page.locator('.opblock[id$="-ask"]');
      await block.locator('.opblock-summary-control').click();
      await block.locator('button.execute').click();
      await block.locator('.live-responses-table .response-col_status', { hasText: '200' }).first().waitFor();
    }
    expect(proxy.outside.filter((path) => path !== '/favicon.ico')).toEqual([]);
  }, 180_000); // seven pages, one of them with all of Swagger
});
