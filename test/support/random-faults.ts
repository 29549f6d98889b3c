import { setTimeout as sleep } from 'node:timers/promises';
import { workersOf } from './processes.js';
import type { Service } from './service.js';

/** A fault that can strike at any moment. */
export type FaultKind = 'worker-kill' | 'worker-stop' | 'cli-kill' | 'cli-stop' | 'reload';

/** As often as they are named. A stopped worker is not noticed for ten seconds, so there are few of those. */
export const everyKind: readonly FaultKind[] = [
  ...Array<FaultKind>(6).fill('worker-kill'),
  ...Array<FaultKind>(4).fill('cli-kill'),
  ...Array<FaultKind>(4).fill('cli-stop'),
  'worker-stop',
  'reload',
];

/** Owns the faults that strike one service at random moments, until it is stopped. */
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

  /** One fault of these kinds at a time, with pauses up to `maxPauseMs`. */
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

/** Whether it was still there. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
