import type { Locator, Page } from 'playwright-core';
import { Account } from '../../support/agents/account.js';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { freePort } from '../../support/basics/free-port.js';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { untilEnded } from '../../support/clients/background.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import {
  enterKey,
  forgetKey,
  headersOf,
  type KeyHolder,
  keyOf,
  writeNamedKeys,
} from '../../support/doors/named-keys.js';
import { type Service, startService, startWithProgram } from '../../support/service/service.js';
import { redisServer, startRedis } from '../../support/stores/redis-server.js';

/** The page Now of the console, with its parts found as a user finds them. */
class NowPage {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  /** Returns the part of the page with this heading. */
  card(title: string): Locator {
    return this.page.getByRole('region', { name: title, exact: true });
  }

  get busySlots(): Locator {
    return this.page.locator('.slot.busy');
  }

  /** Resolves when this text is on the page. */
  async says(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).first().waitFor();
  }

  async recheck(): Promise<void> {
    await this.page.getByRole('button', { name: 'Check now' }).click();
  }
}

describe('The page Now', () => {
  let browser: Browser;
  let now: NowPage;

  beforeAll(async () => {
    browser = await startBrowser();
    now = new NowPage(browser.page);
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  it('shows an idle service, and offers no check if no key is configured', async () => {
    await using service = await startService({ env: { MODEL_API_MAX_CONCURRENT: '4' } });
    await openConsole(browser, service, '/now');
    await now.card('Slots').getByText('0 of 4 busy').waitFor();
    await now.card('Queue').getByText('The queue is empty.').waitFor();
    await now.card('Workers').getByText('Worker 1: ready').waitFor();
    await now
      .card('Workers')
      .getByText(/pid \d+/)
      .waitFor();
    await now.card('Readiness of the model CLI').getByText('Last check: ready').waitFor();
    await expectGoodLooks(now.page, 'now-idle');
    await now.says('Healthy');
    expect(await now.page.getByRole('button', { name: 'Check now' }).count()).toBe(0);
    expectClean(browser, service);
  });

  it('follows jobs from the queue through the slots to their end, second by second', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, {
      MODEL_API_MAX_CONCURRENT: '3',
      MODEL_API_MAX_QUEUE: '20',
    });
    await openConsole(browser, service, '/now');
    await now.card('Slots').getByText('0 of 3 busy').waitFor();
    const jobs = Array.from({ length: 5 }, () => service.post('/ask', { prompt: 'a' }));
    await now.card('Slots').getByText('3 of 3 busy').waitFor();
    await now.card('Queue').getByText('2 of 20 places taken').waitFor();
    const background = await service.post('/ask', { prompt: 'a' }, { prefer: 'respond-async' });
    await now.card('Queue').getByText('Background jobs: 1 of 1,000 waiting, 0 running').waitFor();
    const processes = () => now.card('CLI processes').innerText();
    await until(async () => /busy\s*answering\s*3/.test(await processes()), 'three busy processes');
    const age = await now.busySlots.first().locator('strong').innerText();
    const shownAge = async () => Number.parseInt(await now.busySlots.first().locator('strong').innerText(), 10);
    await until(async () => (await shownAge()) >= Number.parseInt(age, 10) + 2, 'the shown age to grow');
    await expectGoodLooks(now.page, 'now-busy');
    await gate.open();
    await Promise.all(jobs);
    await untilEnded(service, background.body.job_id);
    await now.card('Slots').getByText('0 of 3 busy').waitFor();
    await now.card('Queue').getByText('0 of 1,000 waiting, 0 running').waitFor();
    await now.says(/6 jobs, p50 up to/);
    expectClean(browser, service);
  });

  it('can be used with keyboard and mouse, and read as a table', async () => {
    await using service = await startService();
    await service.post('/ask', { prompt: 'hello' });
    await openConsole(browser, service, '/now');
    await now.says(/1 job, p50 up to/);
    const checks = now.page.getByRole('slider', { name: 'Readiness checks, oldest first' });
    await checks.focus();
    expect(await checks.getAttribute('aria-valuetext')).toMatch(/^\d\d:\d\d:\d\d, ready, at the start$/);
    const times = now.page.getByRole('slider', { name: 'Job duration' });
    await times.focus();
    expect(await times.getAttribute('aria-valuetext')).toMatch(/^\d\d:\d\d: (p50 \d.*, p95 \d.*|no job has ended)$/);
    await times.hover();
    await now.says(/^\d\d:\d\d: before the start$/);
    await checks.hover();
    await now.card('Readiness of the model CLI').getByText('ready', { exact: true }).waitFor();
    await now.page.getByText('As a table').click();
    await now.says(/1 job, p50 up to/);
    const table = now.page.getByRole('table', { name: 'The last hour, minute by minute' });
    expect(await table.getByRole('row').nth(0).innerText()).toMatch(/From\s+Requests\s+Errors\s+Jobs/);
    await expectGoodLooks(now.page, 'now-table');
    await now.page.getByRole('button', { name: 'Day', exact: true }).click();
    await now.page.getByRole('heading', { name: 'The last day' }).waitFor();
    const requests = now.page.getByRole('slider', { name: 'Requests in 5 minutes' });
    await requests.focus();
    // Five minutes may have ended since the start of the service.
    const shown = /^\d\d:\d[05]: (before the start|\d+ requests?)$/;
    expect(await requests.getAttribute('aria-valuetext')).toMatch(shown);
    await expectGoodLooks(now.page, 'now-day');
    expectClean(browser, service);
  });

  it('shows that the service drains, that its data is old, and updates when the service is back', async () => {
    await using gate = await createAnswerGate();
    const env = { MODEL_API_PORT: String(await freePort()), MODEL_API_DRAIN_TIMEOUT_SECONDS: '60' };
    await using first = await startWithProgram(gate.command, env);
    await openConsole(browser, first, '/now');
    const job = first.post('/ask', { prompt: 'a' });
    await now.busySlots.waitFor();
    first.process.kill('SIGTERM');
    await now.says('The service is draining');
    await expectGoodLooks(now.page, 'now-draining');
    await gate.open();
    await job;
    await first.stop();
    await now.says('Connection lost: data is');
    await now.says('Not live');
    await expectGoodLooks(now.page, 'now-old');
    await using second = await startWithProgram(gate.command, env);
    await now.page.getByText('Live', { exact: true }).waitFor();
    await now.page.getByText('Connection lost: data is').waitFor({ state: 'detached' });
    expectClean(browser, second, /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY/);
  });

  describeWith(redisServer)('with several faults at once', () => {
    it('names the broken CLI and the store, since when the queue is full and how many jobs were refused', async () => {
      await using redis = await startRedis();
      await using gate = await createAnswerGate();
      await using service = await startService({
        env: {
          MODEL_API_CLI: 'auto',
          MODEL_API_CLIS: `good=command:${gate.command},broken=command:/nowhere/model,other=demo`,
          MODEL_API_STORE: redis.url,
          MODEL_API_MAX_CONCURRENT: '1',
          MODEL_API_MAX_QUEUE: '2',
        },
      });
      await service.log('readiness_checked', ({ cli }) => cli === 'broken');
      await openConsole(browser, service, '/now');
      await now.says('Degraded');
      await now.says(/^The model CLI broken is not ready: .*is not installed on this host/);
      for (const check of ['broken: not ready', 'good: ready', 'other: ready']) {
        await now.card('Readiness of the model CLI').getByText(check, { exact: true }).waitFor();
      }
      const jobs = Array.from({ length: 3 }, () => service.post('/ask', { prompt: 'a' }));
      await now.card('Queue').getByText('2 of 2 places taken').waitFor();
      await Promise.all(Array.from({ length: 3 }, () => service.post('/ask', { prompt: 'b' })));
      await now.says('3 requests were refused in the last 5 minutes.');
      await redis.end('SIGKILL');
      await now.says('The store (redis) is down: conversations and background jobs are refused.');
      await now.says(/^The queue has been full since \d\d:\d\d:\d\d\.$/);
      await now.says(/^0 errors, 0 failed jobs, 3 refused$/);
      await expectGoodLooks(now.page, 'now-troubled');
      await gate.open();
      await Promise.all(jobs);
      await now.page.getByText(/^The queue has been full/).waitFor({ state: 'detached' });
      await redis.start();
      await now.page.getByText(/^The store/).waitFor({ state: 'detached' });
      expectClean(browser, service);
    });
  });

  it('shows once that a quota is used up, and when the next job is allowed', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    await account.set(`quota ${Math.ceil(Date.now() / 1000) + 1800}`);
    await using service = await account.start();
    await openConsole(browser, service, '/now');
    await now.says('Healthy');
    await service.post('/ask', { prompt: 'a' });
    await now.says(
      /^The account of the model CLI claude has used up its quota\. No job is started before .*\d\d:\d\d\.$/,
    );
    await now.says('Degraded');
    await now.card('Readiness of the model CLI').getByText('Last check: not ready').waitFor();
    expect(await now.page.getByText(/paused|The circuit breaker is/).count()).toBe(0);
    expect(await now.page.getByText(/is not ready:/).count()).toBe(0);
    await expectGoodLooks(now.page, 'now-quota');
    expectClean(browser, service);
  });

  describe('with named keys', () => {
    const openAs = async (service: Service, holder: KeyHolder) => {
      await openConsole(browser, service, '/now');
      await enterKey(browser.page, keyOf(holder));
    };

    it('shows clients and process ids to an operator, and “another client” to others', async () => {
      await using keys = await writeNamedKeys();
      await using gate = await createAnswerGate();
      await using service = await startWithProgram(gate.command, { ...keys.env, MODEL_API_MAX_CONCURRENT: '1' });
      const jobs = (['alice', 'bob', 'bob'] as const).map((holder) =>
        service.post('/ask', { prompt: 'a' }, headersOf(holder)),
      );
      await openAs(service, 'operator');
      await now.busySlots.getByText('alice').waitFor();
      await now
        .card('Queue')
        .getByRole('row', { name: /^bob 2 a free slot \d+ s$/ })
        .waitFor();
      await now
        .card('Workers')
        .getByText(/pid \d+/)
        .waitFor();
      await now.recheck();
      await now.card('Readiness of the model CLI').getByText('requested').waitFor();
      await forgetKey(now.page);
      await openAs(service, 'bob');
      await now.busySlots.getByText('another client').waitFor();
      await now
        .card('Queue')
        .getByRole('row', { name: /^another client 2 / })
        .waitFor();
      expect(await now.page.locator('main').innerText()).not.toMatch(/alice|bob|pid/);
      expect(await now.page.getByRole('button', { name: 'Check now' }).count()).toBe(0);
      await expectGoodLooks(now.page, 'now-plain-key');
      await gate.open();
      await Promise.all(jobs);
      expectClean(browser, service, /status of 401/);
    });

    it('reports that a key is required', async () => {
      await using keys = await writeNamedKeys();
      await using service = await startService({ env: keys.env });
      await openConsole(browser, service, '/now');
      await now.page.getByLabel('Your key').waitFor();
      await now.page.keyboard.press('Escape');
      await now.says('API key required');
      await now.page.getByRole('button', { name: 'Retry' }).click();
      await enterKey(browser.page, keyOf('alice'));
      await now.page.getByText('Live', { exact: true }).waitFor();
      expectClean(browser, service, /status of 401/);
    });
  });
});
