import { setTimeout as sleep } from 'node:timers/promises';
import { workersOf } from '../processes/processes.js';
import type { Service } from './service.js';

/** Kind of fault that can occur at any moment. */
export type FaultKind = 'worker-kill' | 'worker-stop' | 'cli-kill' | 'cli-stop' | 'reload';

/** Repetitions set the frequency. Stops of workers are rare, because each is only noticed after ten seconds. */
export const everyKind: readonly FaultKind[] = [
  ...Array<FaultKind>(6).fill('worker-kill'),
  ...Array<FaultKind>(4).fill('cli-kill'),
  ...Array<FaultKind>(4).fill('cli-stop'),
  'worker-stop',
  'reload',
];

/** Owns random faults of one service, until it is stopped. */
export class RandomFaults {
  readonly struck: Record<FaultKind, number> = {
    'worker-kill': 0,
    'worker-stop': 0,
    'cli-kill': 0,
    'cli-stop': 0,
    reload: 0,
  };
  readonly #service: Service;
  readonly #random: () => number;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  /** Causes one fault of these kinds at a time, with pauses up to `maxPauseMs`. */
  constructor(service: Service, kinds: readonly FaultKind[], random: () => number, maxPauseMs: number) {
    this.#service = service;
    this.#random = random;
    this.#running = this.#strike(kinds, maxPauseMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #strike(kinds: readonly FaultKind[], maxPauseMs: number): Promise<void> {
    for (;;) {
      const pause = sleep(this.#random() * maxPauseMs, undefined, { signal: this.#stop.signal });
      const isOver = await pause.then(
        () => false,
        () => true,
      );
      if (isOver) return;
      const kind = this.#oneOf(kinds);
      if (kind !== undefined && (await this.#act(kind))) this.struck[kind]++;
    }
  }

  async #act(kind: FaultKind): Promise<boolean> {
    if (kind === 'reload') return this.#service.process.kill('SIGHUP');
    const pids = kind.startsWith('worker') ? workersOf(this.#service.pid) : this.#service.jobProcesses();
    const pid = this.#oneOf(await pids);
    return pid !== undefined && signal(pid, kind.endsWith('kill') ? 'SIGKILL' : 'SIGSTOP');
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
