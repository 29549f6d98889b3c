import { setTimeout as sleep } from 'node:timers/promises';
import type { TinyDisk } from '../basics/tiny-disk.js';
import { killIfAlive, workersOf } from '../processes/processes.js';
import type { Service } from '../service/service.js';

const kinds = [
  'worker-kill',
  'worker-stop',
  'worker-pause',
  'cli-kill',
  'cli-stop',
  'primary-pause',
  'reload',
  'disk-full',
] as const;
/** Kind of fault that can occur at any moment. Killing the primary ends a run: see the driver. */
export type FaultKind = (typeof kinds)[number];

/** Repetitions set the frequency. A disk is full only in a run that has one of its own. Stops of workers are rare, because each is only noticed after ten seconds. */
export const everyKind: readonly FaultKind[] = [
  ...Array<FaultKind>(6).fill('worker-kill'),
  ...Array<FaultKind>(4).fill('cli-kill'),
  ...Array<FaultKind>(4).fill('cli-stop'),
  'worker-stop',
  'worker-pause',
  'primary-pause',
  'disk-full',
  'reload',
];

/** Faults without which a run proves little. */
export const usualKinds: readonly FaultKind[] = ['worker-kill', 'cli-kill', 'cli-stop'];

/** Duration of a pause, and of a full disk. */
const pauseMs = 300;

/** Owns random faults of one service, until it is stopped. */
export class RandomFaults {
  readonly struck = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<FaultKind, number>;
  readonly #service: Service;
  readonly #random: () => number;
  readonly #disk: TinyDisk | null;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #stoppedWorkers = new Set<number>();

  /** Causes one fault of these kinds at a time, with pauses up to `maxPauseMs`. The disk, if any, has the state folder. */
  constructor(
    service: Service,
    choices: readonly FaultKind[],
    random: () => number,
    maxPauseMs: number,
    disk: TinyDisk | null = null,
  ) {
    this.#service = service;
    this.#random = random;
    this.#disk = disk;
    this.#running = this.#strike(choices, maxPauseMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    for (const pid of this.#stoppedWorkers) killIfAlive(pid); // the primary would wait for some seconds
  }

  async #strike(choices: readonly FaultKind[], maxPauseMs: number): Promise<void> {
    for (;;) {
      const pause = sleep(this.#random() * maxPauseMs, undefined, { signal: this.#stop.signal });
      const isOver = await pause.then(
        () => false,
        () => true,
      );
      if (isOver) return;
      const kind = this.#oneOf(choices);
      if (kind !== undefined && (await this.#act(kind))) this.struck[kind]++;
    }
  }

  async #act(kind: FaultKind): Promise<boolean> {
    if (kind === 'reload') return this.#service.process.kill('SIGHUP');
    if (kind === 'disk-full') return this.#fillDisk();
    const pid = kind === 'primary-pause' ? this.#service.pid : this.#oneOf(await this.#victimsOf(kind));
    if (pid === undefined || !signal(pid, kind.endsWith('kill') ? 'SIGKILL' : 'SIGSTOP')) return false;
    if (kind === 'worker-stop') this.#stoppedWorkers.add(pid);
    if (!kind.endsWith('pause')) return true;
    await sleep(pauseMs);
    signal(pid, 'SIGCONT');
    return true;
  }

  #victimsOf(kind: FaultKind): Promise<number[]> {
    return kind.startsWith('worker') ? workersOf(this.#service.pid) : this.#service.jobProcesses();
  }

  async #fillDisk(): Promise<boolean> {
    if (this.#disk === null) return false;
    await this.#disk.fill();
    await sleep(pauseMs);
    await this.#disk.empty();
    return true;
  }

  #oneOf<T>(choices: readonly T[]): T | undefined {
    return choices[Math.floor(this.#random() * choices.length)];
  }
}

/** Sends a signal; returns whether the process existed. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
