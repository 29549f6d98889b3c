import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { until } from '../basics/until.js';
import { Contract } from '../doors/contract.js';
import { jobProcesses, workersOf } from '../processes/processes.js';

/** Record of the service's log. */
export interface LogRecord {
  readonly event: string;
  readonly [field: string]: unknown;
}

export interface ServiceOptions {
  /** Variables in addition to a free port, one worker and the demo model. */
  readonly env?: Readonly<Record<string, string>>;
  /** Contract that every answer is checked against; several services may share one. */
  readonly contract?: Contract;
  /** Whether the service leads a process group, as in a terminal. */
  readonly isDetached?: boolean;
  /** Open file for the log, instead of `logs`. */
  readonly stdout?: number | Socket;
  /** Program to run, from another copy of the project. */
  readonly program?: string;
  /** Node that runs the service and its workers; by default the one of the tests. */
  readonly node?: string;
  /** Working directory; by default the one of the tests. */
  readonly folder?: string;
  /** User id and group id of the service. */
  readonly user?: number;
}

export const programs = join(__dirname, '..', '..', '..', '..', 'test', 'support', 'fixtures', 'programs');
/** Folder `dist` of the build that runs; SERVICE_DIST names that of another version. */
const dist = process.env.SERVICE_DIST ?? join(__dirname, '..', '..', '..');
export const mainProgram = join(dist, 'src', 'primary', 'main.js');
export const workerProgram = join(dist, 'src', 'worker', 'main.js');

/** Returns the command line of a fixture program that this Node runs. */
export function fixture(name: string, ...args: string[]): string {
  return [process.execPath, join(programs, name), ...args].map((word) => `'${word}'`).join(' ');
}

/** Returns the command line of a fixture program with a shebang line. */
export function script(name: string, ...args: string[]): string {
  return [join(programs, name), ...args].map((word) => `'${word}'`).join(' ');
}

/**
 * Command line that runs the fixture program which a request names as its model: `name.pl`, or `name.pl:argument`. So
 * one service serves tests with many programs.
 */
export const namedProgram = `sh -c 'IFS=:; set -- $1; name=$1; shift; exec "$0/$name" "$@"' '${programs}' {model}`;

/** For tests whose requests must reach different workers. */
export const twoWorkers = { MODEL_API_WORKERS: '2' };

/** Running service with real processes on a free loopback port. */
export class Service implements AsyncDisposable {
  readonly logs: LogRecord[] = [];
  readonly stderr: string[] = [];
  readonly home: string;
  readonly process: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly contract: Contract;
  port = 0;

  constructor(child: ChildProcess, home: string, contract = new Contract()) {
    this.process = child;
    this.home = home;
    this.contract = contract;
    this.exited = once(child, 'exit').then(([code]) => code as number | null);
    if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', (line) => this.#keep(line));
    if (child.stderr !== null) createInterface({ input: child.stderr }).on('line', (line) => this.stderr.push(line));
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.process.pid as number;
  }

  #keep(line: string): void {
    this.logs.push(JSON.parse(line) as LogRecord);
  }

  /** Resolves with the first matching record of this event, past or future. */
  log(event: string, fits: (record: LogRecord) => boolean = () => true, withinMs?: number): Promise<LogRecord> {
    const found = () => this.logs.find((record) => record.event === event && fits(record));
    return until(found, `a log record ${event}`, withinMs);
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Answer> {
    return this.#send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      ...(signal && { signal }),
    });
  }

  get(path: string, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Answer> {
    return this.#send(path, { method: 'GET', headers, ...(signal && { signal }) });
  }

  patch(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const json = { 'content-type': 'application/json', ...headers };
    return this.#send(path, { method: 'PATCH', headers: json, body: JSON.stringify(body) });
  }

  delete(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#send(path, { method: 'DELETE', headers });
  }

  async #send(path: string, request: RequestInit): Promise<Answer> {
    return answerOf(await this.fetch(path, request));
  }

  /** Sends a request; resolves when the headers have arrived. The contract checks the answer at its end. */
  fetch(path: string, request?: RequestInit): Promise<Response> {
    return this.contract.fetch(this.url, path, request);
  }

  /** Returns the pids of the ready workers; none if keys hide the pids and a worker is not ready. */
  async workers(signal?: AbortSignal): Promise<number[]> {
    const { body } = await this.get('/health', {}, signal);
    const { workers } = body.observability as { workers: { pid?: number | null; state: string }[] };
    const areHidden = workers.some(({ pid }) => pid === undefined);
    if (areHidden) return workers.every(({ state }) => state === 'ready') ? workersOf(this.pid) : [];
    return workers.flatMap(({ pid, state }) => (typeof pid === 'number' && state === 'ready' ? [pid] : []));
  }

  /** Returns the living processes of this service's jobs. */
  jobProcesses(): Promise<number[]> {
    return jobProcesses(this.pid);
  }

  /**
   * Sends SIGTERM, waits for the exit and returns its code. Throws if a job process is left, or if Node has printed a
   * warning.
   */
  async stop(): Promise<number | null> {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill('SIGTERM');
    const code = await this.exited;
    const left = await this.jobProcesses();
    for (const pid of left) process.kill(pid, 'SIGKILL');
    await rm(this.home, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`the service left processes behind: ${left.join(' ')}`);
    const outputs = this.logs.flatMap(({ event, text }) => (event === 'worker_output' ? [String(text)] : []));
    const warnings = [...this.stderr, ...outputs].filter((text) => /^\(node:\d+\) .*Warning: /m.test(text));
    if (warnings.length > 0) throw new Error(`Node warned: ${warnings.join(' ')}`);
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
}

/** Starts a service without waiting, for services that must fail. */
export async function spawnService(options: ServiceOptions = {}): Promise<Service> {
  const { env = {}, contract, isDetached = false, stdout = 'pipe' } = options;
  const { node = process.execPath, program = mainProgram, folder, user } = options;
  const home = await mkdtemp(join(tmpdir(), 'prompt-relay-test-'));
  if (user !== undefined) await chown(home, user, user);
  const child = spawn(node, [program], {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: home,
      TMPDIR: home,
      MODEL_API_PORT: '0',
      MODEL_API_WORKERS: '1',
      MODEL_API_CLI: 'demo',
      MODEL_API_ACCOUNTS_AS_ROOT: 'true',
      // Processes on standby or in live sessions would count as leftovers.
      MODEL_API_STANDBY: '0',
      MODEL_API_LIVE_SESSIONS: '0',
      MODEL_API_DRAIN_TIMEOUT_SECONDS: '5', // a failed test must end within its limit
      ...env,
    },
    stdio: ['ignore', stdout, 'pipe'],
    detached: isDetached,
    cwd: folder,
    ...(user !== undefined && { uid: user, gid: user }),
  });
  return new Service(child, home, contract);
}

const failLimitMs = 10_000;

/** Starts a service that must fail, and waits for its exit. Rejects if it survives. */
export async function failingService(
  env: Readonly<Record<string, string>>,
): Promise<Service & { code: number | null }> {
  const service = await spawnService({ env });
  try {
    await once(service.process, 'close', { signal: AbortSignal.timeout(failLimitMs) }); // after the last output
    return Object.assign(service, { code: await service.exited });
  } finally {
    await service.stop();
  }
}

/** Starts a service, and waits until every worker listens. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const service = await spawnService(options);
  try {
    await untilReady(service, Number(options.env?.MODEL_API_WORKERS ?? 1));
    return service;
  } catch (error) {
    await service.stop();
    throw error;
  }
}

/** Limit for a start, long enough for a start under strace on a busy machine. */
const startLimitMs = 60_000;

async function untilReady(service: Service, size: number): Promise<void> {
  const record = service.log('service_ready', undefined, startLimitMs).catch((error: Error) => error);
  const ready = await Promise.race([record, service.exited]);
  if (ready === null || typeof ready === 'number' || ready instanceof Error) {
    throw new Error(
      `the service did not start (${ready}): ${service.stderr.join('\n')} ${JSON.stringify(service.logs)}`,
    );
  }
  service.port = ready.port as number;
  await until(async () => (await service.workers()).length === size, 'all workers to listen');
}

/** Starts a service whose model CLI is a fixture program. */
export function startWithProgram(
  command: string,
  env: Readonly<Record<string, string>> = {},
  options: Omit<ServiceOptions, 'env'> = {},
): Promise<Service> {
  return startService({ env: { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: command, ...env }, ...options });
}

/** Starts a service with the demo model and, as further CLIs, fixture programs: a request names one as its model. */
export function startWithPrograms(
  commands: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  options: Omit<ServiceOptions, 'env'> = {},
): Promise<Service> {
  const clis = ['demo', ...Object.entries(commands).map(([name, command]) => `${name}=command:${command}`)];
  return startService({ env: { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis.join(','), ...env }, ...options });
}
