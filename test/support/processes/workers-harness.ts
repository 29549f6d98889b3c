import cluster, { type Worker } from 'node:cluster';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { SharedHandlers, WorkerHandle } from '../../../src/primary/workers/worker-handle.js';
import { Workers, type WorkersObserver } from '../../../src/primary/workers/workers.js';
import { primaryCalls, workerCalls } from '../../../src/shared/ipc/protocol.js';
import { FakeClock } from '../basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../basics/folder.js';
import { LogBook } from '../basics/log-book.js';
import { until } from '../basics/until.js';
import { root } from '../documents/sources.js';
import { killIfAlive } from './processes.js';

const programs = join(root, 'test', 'support', 'fixtures', 'workers');

/** Returns the path of this worker program of the fixtures. */
export function workerProgram(name: string): string {
  return join(programs, `${name}.js`);
}

interface WorkersOptions {
  readonly size?: number;
  readonly fds?: readonly number[];
}

/** Manages real worker processes with a fake clock. Only one harness can exist at a time. */
export class WorkersHarness implements AsyncDisposable, WorkersObserver {
  readonly clock = new FakeClock();
  readonly log = new LogBook();
  /** Observed events, in order. */
  readonly reports: string[] = [];
  readonly handles: WorkerHandle[] = [];
  readonly workers: Workers;
  readonly #folder: TemporaryFolder;

  static async create(options: WorkersOptions = {}): Promise<WorkersHarness> {
    return new WorkersHarness(await temporaryFolder(), options);
  }

  private constructor(folder: TemporaryFolder, { size = 1, fds = [] }: WorkersOptions) {
    this.#folder = folder;
    this.workers = new Workers(
      { size, maxExchangeMs: 1000, fds, calls: primaryCalls, workerCalls },
      this,
      this.clock,
      this.log,
    );
  }

  start(program: string): void {
    this.workers.start(program.includes('\0') ? program : workerProgram(program), {} as SharedHandlers);
  }

  /** Lets workers that are forked later run this program. */
  use(program: string): void {
    cluster.setupPrimary({ exec: workerProgram(program) });
  }

  workerListening(worker: WorkerHandle): void {
    this.handles.push(worker);
    this.reports.push('listening');
  }

  workersUnavailable(reason: string): void {
    this.reports.push(`unavailable: ${reason}`);
  }

  figuresReported(_worker: WorkerHandle, families: readonly { readonly name: string }[]): void {
    this.reports.push(`counted: ${families.map(({ name }) => name)}`);
  }

  workerLeft(): void {
    this.reports.push('left');
  }

  workerRestarted(cause: string): void {
    this.reports.push(`restarted: ${cause}`);
  }

  workerFailed(): void {
    this.reports.push('broke');
  }

  async untilTold(event: string, times = 1): Promise<void> {
    await until(() => this.reports.filter((told) => told === event).length >= times, `${times} times ${event}`);
  }

  async untilLogged(event: string, times = 1): Promise<void> {
    await until(() => this.log.events.filter((logged) => logged === event).length >= times, `${times} times ${event}`);
  }

  /** Lets each later start of a worker fail with ENOENT, as if its program were missing. */
  breakStarts(): void {
    cluster.setupPrimary({ cwd: this.#cwd });
  }

  async repairStarts(): Promise<void> {
    await mkdir(this.#cwd);
  }

  /** Workers that Node knows, even if the manager does not. */
  get known(): Worker[] {
    return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  }

  pids(): number[] {
    return this.known.flatMap(({ process }) => process.pid ?? []);
  }

  /** Reports a heartbeat of this worker, because the fixtures send none. */
  beat(pid: number | null | undefined): void {
    const worker = this.known.find(({ process }) => process.pid === pid);
    worker?.emit('message', [{ kind: 'call', id: 1000, name: 'heartbeat', request: {} }]);
  }

  /** Blocks all signals to the workers, as if they waited in the kernel. */
  shield(): void {
    for (const { process } of this.known) process.kill = () => true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.pids()) killIfAlive(pid);
    await this.workers.stop(2000);
    cluster.setupPrimary({ cwd: undefined });
    await this.#folder[Symbol.asyncDispose]();
  }

  get #cwd(): string {
    return join(this.#folder.path, 'missing');
  }
}
