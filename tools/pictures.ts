import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { startBrowser } from '../test/support/browser.js';
import { openConsole } from '../test/support/console.js';
import { Screen } from '../test/support/screen.js';
import { type Service, script, startService } from '../test/support/service.js';
import { root } from '../test/support/sources.js';
import { until } from '../test/support/until.js';
import { terminalPage } from './terminal-page.js';

const maxBytes = 80_000;
const limitMs = 30_000;
/** Longer than the pictures take. */
const longPrompt = 'drip 300 100';

/** The pictures of the README and of the page on the command, from the running product: `npm run pictures`. */
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

/** A short conversation with the demo model. */
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
    await page.getByRole('button', { name: 'Send' }).waitFor(); // in place of Stop
  }
  await page.screenshot({ path, animations: 'disabled' });
}

/** More jobs than slots. */
async function pictureStatus(path: string): Promise<void> {
  await using service = await startService({
    env: {
      MODEL_API_CLI: 'demo',
      MODEL_API_CLI_COMMAND: script('converses.pl'),
      MODEL_API_WORKERS: '2',
      MODEL_API_MAX_QUEUE: '20',
      MODEL_API_READINESS_INTERVAL_SECONDS: '1',
    },
  });
  const leaving = new AbortController();
  const jobs = askLong(service, leaving.signal);
  await using screen = await Screen.open(service, ['status', '--watch', '--interval', '1'], { columns: 118, rows: 30 });
  const text = await until(
    async () => {
      const shown = await screen.colouredText();
      const isWhole = shown.includes('4 of 4') && /\d of \d\d? checks/.test(shown) && shown.includes('Press Ctrl-C');
      return isWhole && /job ages.*\d\.\d s/.test(shown) ? shown : null;
    },
    'all slots to be taken for seconds',
    limitMs,
  );
  leaving.abort();
  await jobs;
  await using browser = await startBrowser();
  await browser.page.setViewportSize({ width: 1280, height: 720 });
  await browser.page.setContent(
    terminalPage('prompt-relay status --watch', text.replaceAll(`:${service.port}`, ':5051')),
  );
  await browser.page.locator('main').screenshot({ path, animations: 'disabled' });
}

/** Some that are answered at once, then four that run and six that wait. Ends when they are left. */
async function askLong(service: Service, leaving: AbortSignal): Promise<void> {
  for (let n = 0; n < 12; n++) await service.post('/ask', { prompt: 'drip 20 10' });
  const long = Array.from({ length: 10 }, () =>
    service.post('/ask', { prompt: longPrompt }, {}, leaving).catch(() => null),
  );
  await Promise.all(long);
}

main().catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
