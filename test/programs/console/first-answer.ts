import { startBrowser } from '../../support/clients/browser.js';
import { openConsole } from '../../support/clients/console.js';

/**
 * Sends a prompt to the demo model in the console of the service at this URL, in a real Chromium. Waits until the
 * answer is visible.
 */
async function main(url: string): Promise<void> {
  await using browser = await startBrowser();
  await openConsole(browser, { url });
  await browser.page.getByPlaceholder('Ask something').fill('Hello, my name is Ada');
  await browser.page.keyboard.press('Enter');
  await browser.page.getByText('Nice to meet you, Ada.').first().waitFor();
}

main(process.argv[2] ?? '').catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
