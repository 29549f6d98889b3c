import { startBrowser } from '../support/browser.js';
import { expectClean, openConsole } from '../support/console.js';
import { startService } from '../support/service.js';

const maxFirstPaintBytes = 100_000;

describe('The console in a browser', () => {
  it('loads in less than 100 KB in all, from this service alone', async () => {
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
});
