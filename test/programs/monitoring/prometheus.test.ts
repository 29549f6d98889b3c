import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { Account } from '../../support/agents/account.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { expressionsOf, monitoringFolder, readDashboard, readRules } from '../../support/documents/monitoring.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import {
  programs,
  type Service,
  script,
  startService,
  startWithProgram,
  twoWorkers,
} from '../../support/service/service.js';

const prometheusProgram = '/usr/bin/prometheus';

/** Time for some scrapes and evaluations on a busy machine. */
const limitMs = 60_000;

/** Services to scrape, by the name of their instance. */
type Targets = Readonly<Record<string, Service>>;

interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [seconds: number, value: string];
}

interface Rule {
  readonly name: string;
  readonly health: 'ok' | 'err' | 'unknown';
  readonly lastError?: string;
}

/** A real Prometheus on a free port of loopback. It scrapes and evaluates rules each second. */
class Prometheus implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #folder: TemporaryFolder;
  readonly #log: string[] = [];
  #url = '';

  constructor(process: ChildProcess, folder: TemporaryFolder) {
    this.#process = process;
    this.#folder = folder;
    if (process.stderr !== null) createInterface({ input: process.stderr }).on('line', (line) => this.#log.push(line));
  }

  async ready(): Promise<void> {
    const port = () => this.#find(/msg="Listening on" address=127\.0\.0\.1:(\d+)/)?.[1];
    this.#url = `http://127.0.0.1:${await until(port, 'Prometheus to listen', limitMs)}`;
    await until(() => this.#find(/Server is ready/), 'Prometheus to be ready', limitMs);
  }

  /** Evaluates an expression. Returns its numbers with their labels, without NaN. Throws the error of Prometheus. */
  async query(expr: string): Promise<Sample[]> {
    const { result } = await this.#get<{ result: Sample[] }>(`query?${new URLSearchParams({ query: expr })}`);
    return result.filter(({ value: [, value] }) => value !== 'NaN');
  }

  /** Resolves when the expression has a number. */
  async has(expr: string): Promise<void> {
    await until(async () => (await this.query(expr)).length > 0, `a number for ${expr}`, limitMs);
  }

  async rules(): Promise<Rule[]> {
    const { groups } = await this.#get<{ groups: { rules: Rule[] }[] }>('rules');
    return groups.flatMap(({ rules }) => rules);
  }

  async #get<Data>(path: string): Promise<Data> {
    const response = await fetch(`${this.#url}/api/v1/${path}`);
    const { data, error } = (await response.json()) as { data: Data; error?: string };
    if (error !== undefined) throw new Error(`${path}: ${error}`);
    return data;
  }

  #find(pattern: RegExp): RegExpExecArray | null {
    return this.#log.map((line) => pattern.exec(line)).find((found) => found !== null) ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.kill()) await once(this.#process, 'exit');
    await this.#folder[Symbol.asyncDispose]();
  }
}

/** Starts a Prometheus with these rule files, and waits until it has scraped every target. */
async function startPrometheus(targets: Targets, ruleFiles: readonly string[]): Promise<Prometheus> {
  const folder = await temporaryFolder();
  const config = join(folder.path, 'prometheus.yml');
  await writeFile(config, JSON.stringify(configOf(targets, ruleFiles))); // JSON is YAML
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${folder.path}/data`,
    '--web.listen-address=127.0.0.1:0',
  ];
  const child = spawn(prometheusProgram, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const prometheus = new Prometheus(child, folder);
  try {
    await prometheus.ready();
    for (const instance of Object.keys(targets)) await prometheus.has(`up{instance="${instance}"} == 1`);
    return prometheus;
  } catch (error) {
    await prometheus[Symbol.asyncDispose]();
    throw error;
  }
}

function configOf(targets: Targets, ruleFiles: readonly string[]): object {
  const configs = Object.entries(targets).map(([instance, { port }]) => ({
    targets: [`127.0.0.1:${port}`],
    labels: { instance },
  }));
  return {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ruleFiles,
    scrape_configs: [{ job_name: 'prompt-relay', static_configs: configs }],
  };
}

const ruleFiles = ['rules.yml', 'alerts.yml'].map((file) => join(monitoringFolder, file));
const alerts = new Map(readRules('alerts.yml').map(({ alert = '', expr }) => [alert, expr]));
const key = { 'x-api-key': 'secret' };
const keyed = { MODEL_API_KEY: key['x-api-key'] };

function alert(name: string): string {
  const expr = alerts.get(name);
  if (expr === undefined) throw new Error(`there is no alert ${name}`);
  return expr;
}

/** Replaces the variables of a Grafana panel: all instances, and a short window. */
function substituted(expr: string): string {
  return expr.replaceAll('$job', 'prompt-relay').replaceAll('$instance', '.+').replaceAll('$__rate_interval', '1m');
}

/**
 * Starts a service with one slot and one place in the queue. Its model answers, or fails for `fail` and hangs for
 * `hang`.
 */
function startNarrow(port = 0): Promise<Service> {
  return startWithProgram(script('tells-what-it-heard.pl'), {
    ...twoWorkers,
    MODEL_API_PORT: String(port),
    MODEL_API_MAX_CONCURRENT: '1',
    MODEL_API_MAX_QUEUE: '1',
    MODEL_API_QUEUE_TIMEOUT_MS: '5000',
  });
}

/**
 * Sends requests of many kinds: answers, conversations that are continued or deleted, tools, a bad request and one too
 * many.
 */
async function talk(service: Service): Promise<void> {
  await until(
    async () => /cli_processes\{cli="demo",state="standby"\} [1-9]/.test((await service.get('/metrics')).text),
    'a standby',
  );
  for (const prompt of ['Hello', 'What is 2 + 2?']) await service.post('/ask', { prompt }, key);
  const { body } = await service.post('/chat', { message: 'My name is Ada.' }, key);
  const id = String(body.conversation_id);
  await service.post('/chat', { message: 'What is my name?', conversation_id: id }, key);
  await service.post('/chat', { message: 'Hello' }, key);
  await service.delete(`/chat/${id}`, key);
  const look = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } };
  const tools = [look, { type: 'web_search' }];
  const messages = [{ role: 'user', content: 'Hello' }];
  await service.post('/v1/chat/completions', { model: 'default', messages, tools }, key);
  await service.post('/health/recheck', {}, key);
  await service.get('/nowhere');
  await until(async () => (await service.post('/ask', {}, key)).status === 429, 'the rate cap');
}

/** Starts a job that occupies the only slot until its client disconnects. */
function hang(service: Service) {
  const client = new AbortController();
  const gone = service.post('/ask', { prompt: 'hang' }, {}, client.signal).catch(({ name }: Error) => name);
  return {
    async leave() {
      client.abort();
      expect(await gone).toBe('AbortError');
    },
  };
}

/**
 * Runs jobs that are answered, that fail, that time out in the queue, that are refused, and one whose client
 * disconnects.
 */
async function crowd(service: Service, whileFull: () => Promise<void> = async () => {}): Promise<void> {
  for (const prompt of ['Hello', 'fail', 'fail', 'fail', 'fail', 'fail']) await service.post('/ask', { prompt });
  await untilJobs(service, 0, 0);
  const running = hang(service);
  await untilJobs(service, 1, 0);
  const waiting = service.post('/ask', { prompt: 'waits in vain' });
  await untilJobs(service, 1, 1);
  expect((await service.post('/ask', { prompt: 'is refused' })).status).toBe(429);
  await whileFull();
  expect((await waiting).status).toBe(504);
  await running.leave();
  await untilJobs(service, 0, 0);
}

/**
 * Whether the metric has series only with a store in a file, which needs a newer Node than the oldest supported one, only
 * after a fallback, which needs a second CLI, or only with accounts.
 */
function isElsewhere(expr: string): boolean {
  return /model_api_(?:store_operation_seconds|fallbacks_total|account_weight)/.test(expr);
}

/** Kills workers until this many have been replaced. */
async function killWorkers(service: Service, count: number): Promise<void> {
  for (let killed = 0; killed < count; killed++) {
    const pid = await until(async () => {
      const [first, second] = await service.workers().catch(() => []);
      return second === undefined ? null : (first ?? null);
    }, 'both workers');
    process.kill(pid, 'SIGKILL');
    await until(() => service.logs.filter(({ event }) => event === 'worker_gone').length > killed, 'the worker to go');
  }
}

describeWith(prometheusProgram)('A Prometheus that scrapes the service', () => {
  it('has data for every panel of the dashboard and every rule after some traffic', async () => {
    await using folder = await temporaryFolder();
    const keysFile = join(folder.path, 'keys');
    const withBudget = `ada:sha256:${digestOf('the-key-of-ada-with-a-budget')}:tokens=1000000/day\n@bio tokens=1000000/day\n`;
    await writeFile(keysFile, withBudget, { mode: 0o600 });
    await using talking = await startService({
      env: {
        ...keyed,
        MODEL_API_KEYS_FILE: keysFile,
        MODEL_API_STANDBY: '1',
        MODEL_API_LIVE_SESSIONS: '2',
        MODEL_API_RATE_LIMIT_MAX_REQUESTS: '20',
        MODEL_API_READINESS_INTERVAL_SECONDS: '1',
      },
    });
    await using narrow = await startNarrow();
    await using prometheus = await startPrometheus({ talking, narrow }, ruleFiles);
    const reserved = { group: 'bio', slots: 1, begins_at: new Date().toISOString(), seconds: 3600 };
    expect(await talking.post('/reservations', reserved, key)).toMatchObject({ status: 201 });
    await talk(talking);
    await crowd(narrow);
    await prometheus.has('model_api_errors_total{instance="narrow",error="cli_error"}');
    for (const prompt of ['fail', 'Hello']) await narrow.post('/ask', { prompt }); // a new counter has no rate yet
    for (const { record = '' } of readRules('rules.yml')) await prometheus.has(record);
    const dashboard = readDashboard();
    const annotations = dashboard.annotations.list.map(({ expr }) => expr);
    const shown = expressionsOf(dashboard);
    for (const expr of shown.filter((each) => !isElsewhere(each)).map(substituted)) await prometheus.has(expr);
    for (const expr of [...annotations, ...shown.filter(isElsewhere)].map(substituted)) await prometheus.query(expr);
    const rules = await prometheus.rules();
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
    expect(rules).toHaveLength(alerts.size + readRules('rules.yml').length);
  });

  it('detects the state of each alert in the metrics of the service', async () => {
    await using folder = await temporaryFolder();
    const program = join(folder.path, 'program');
    await symlink(join(programs, 'leaves-children.pl'), program);
    await using leaving = await startWithProgram(program, {
      ...twoWorkers,
      ...keyed,
      MODEL_API_READINESS_INTERVAL_SECONDS: '1',
    });
    let narrow = await startNarrow();
    const port = narrow.port;
    await using _narrow = { [Symbol.asyncDispose]: () => narrow[Symbol.asyncDispose]() };
    await using accountFolder = await temporaryFolder();
    const account = new Account(accountFolder.path);
    await using metered = await account.start(twoWorkers);
    await using prometheus = await startPrometheus({ leaving, narrow, metered }, ruleFiles);
    const calm = await Promise.all([...alerts.values()].map((expr) => prometheus.query(expr)));
    expect(calm.flat()).toEqual([]);

    await crowd(narrow, () => prometheus.has(alert('PromptRelayQueueFilling')));
    await prometheus.has(alert('PromptRelayErrorRatioHigh'));
    await prometheus.has(alert('PromptRelaySaturated'));

    await leaving.post('/ask', { prompt: 'Hello' }, key);
    await prometheus.has(alert('PromptRelayOrphans'));
    const stale = alert('PromptRelayReadinessStale').replace('> 300', '> 0');
    expect(stale).not.toBe(alert('PromptRelayReadinessStale'));
    await prometheus.has(stale);
    await killWorkers(leaving, 5);
    await prometheus.has(alert('PromptRelayWorkersCrashing'));
    await rm(program);
    await leaving.post('/health/recheck', {}, key);
    await prometheus.has(alert('PromptRelayNotReady'));

    const resetsAt = Math.ceil(Date.now() / 1000) + 600;
    await account.set(`warns ${resetsAt}`);
    await metered.post('/ask', { prompt: 'Hello' });
    await prometheus.has(alert('PromptRelayQuotaNearlyUsed'));
    await account.set(`quota ${resetsAt}`);
    await metered.post('/ask', { prompt: 'Hello' });
    await prometheus.has(alert('PromptRelayHeldBack'));

    const running = hang(narrow);
    await untilJobs(narrow, 1, 0);
    narrow.process.kill('SIGTERM');
    await prometheus.has(alert('PromptRelayDrainStuck'));
    await running.leave();
    await narrow.exited;
    await prometheus.has(alert('PromptRelayDown'));
    for (let starts = 1; starts <= 3; starts++) {
      narrow = await replaced(narrow, port);
      await seesStart(prometheus, starts);
    }
    await prometheus.has(alert('PromptRelayRestarting'));
    expect((await prometheus.rules()).filter(({ health }) => health !== 'ok')).toEqual([]);
  });
});

async function replaced(service: Service, port: number): Promise<Service> {
  await service.stop();
  return startNarrow(port);
}

function seesStart(prometheus: Prometheus, starts: number): Promise<void> {
  return prometheus.has(`changes(model_api_process_start_time_seconds{instance="narrow"}[10m]) >= ${starts}`);
}
