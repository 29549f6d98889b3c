import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { until } from '../test/support/basics/until.js';
import { startBrowser } from '../test/support/clients/browser.js';
import { openConsole } from '../test/support/clients/console.js';
import { Screen } from '../test/support/clients/screen.js';
import { root } from '../test/support/documents/sources.js';
import { type Service, startService } from '../test/support/service/service.js';
import { terminalPage } from './terminal-page.js';

const maxBytes = 80_000;
const limitMs = 30_000;
const installed = '/usr/local/lib/node_modules/prompt-relay';

/** Makes the pictures of the README and of the page on the command, from the running product: `npm run pictures`. */
async function main(): Promise<void> {
  const folder = join(root, 'docs', 'pictures');
  await mkdir(folder, { recursive: true });
  const paths = [join(folder, 'console.png'), join(folder, 'status.png')] as const;
  await pictureConsole(paths[0]);
  await pictureStatus(paths[1]);
  for (const path of paths) {
    const { size } = await stat(path);
    process.stdout.write(`${path}: ${size} bytes\n`);
    if (size > maxBytes) throw new Error(`${path} is larger than ${maxBytes} bytes`);
  }
}

/** Takes a picture of the console with a short conversation with the demo model. */
async function pictureConsole(path: string): Promise<void> {
  await using service = await startService();
  await using browser = await startBrowser();
  const { page } = browser;
  await page.setViewportSize({ width: 1280, height: 720 });
  await openConsole(browser, service, '/ask');
  const exchanges = [
    ['Hello, my name is Ada', 'Nice to meet you, Ada.'],
    ['What is my name?', 'Your name is Ada.'],
  ] as const;
  for (const [said, answered] of exchanges) {
    const composer = page.getByRole('main').getByRole('textbox').last();
    await composer.fill(said);
    await composer.press('Enter');
    await page.getByRole('main').getByText(answered).first().waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor(); // replaces Stop
  }
  await page.screenshot({ path, animations: 'disabled' });
}

/** Takes a picture of `status` with more requests than slots, in the form of an installed npm package. */
async function pictureStatus(path: string): Promise<void> {
  await using service = await startService({
    env: { MODEL_API_CLI: 'demo', MODEL_API_WORKERS: '2', MODEL_API_MAX_QUEUE: '20' },
  });
  const text = await statusWhileBusy(service);
  await using browser = await startBrowser();
  await browser.page.setViewportSize({ width: 1280, height: 720 });
  const shown = text.replaceAll(`:${service.port}`, ':5051').replaceAll(root, installed);
  await browser.page.setContent(terminalPage('prompt-relay status --watch', shown));
  await browser.page.locator('main').screenshot({ path, animations: 'disabled' });
}

/**
 * Runs ten clients that ask one question after another, until all slots are in use and jobs wait. Returns the screen.
 */
async function statusWhileBusy(service: Service): Promise<string> {
  let isEnough = false;
  const askAgain = async () => {
    while (!isEnough) await service.post('/ask', { prompt: 'Hello' });
  };
  await using screen = await Screen.open(service, ['status', '--watch', '--interval', '1'], { columns: 118, rows: 30 });
  const shows = async () => {
    const shown = await screen.colouredText();
    const words = stripVTControlCharacters(shown);
    const isWhole = words.includes('4 of 4') && /queue +[1-9]/.test(words) && words.includes('Press Ctrl-C');
    return isWhole && /now +[1-9]/.test(words) ? shown : null;
  };
  const clients = Array.from({ length: 10 }, askAgain);
  try {
    return await until(shows, 'all slots to be taken, and others to wait', limitMs);
  } finally {
    isEnough = true;
    await Promise.all(clients);
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
