import type { Worker } from 'node:cluster';
import type { Clock } from '../../shared/clock.js';
import { RestartPolicy } from './restart-policy.js';
import type { WorkerPeer } from './worker-peer.js';

export type WorkerState = 'starting' | 'ready' | 'stopping';

export const restartCauses = ['crash', 'unresponsive', 'reload'] as const;
export type RestartCause = (typeof restartCauses)[number];

/** Checks without a sign of life that a worker may miss: before it listens, and from then on. */
const maxSilentChecks = { starting: 15, listening: 10 };
/** A killed process is gone at once, unless it waits in the kernel: for a disk, say, or a network share. */
const killLimitMs = 2000;

/** One worker, from its fork to its exit. */
export class Occupant {
  readonly seat: Seat;
  readonly worker: Worker;
  readonly peer: WorkerPeer;
  /** Resolves with true when it listens, with false when it exits before. */
  readonly settled: Promise<boolean>;
  state: WorkerState = 'starting';
  listeningSinceMs: number | null = null;
  #silentChecks = 0;
  #wasKilled = false;

  constructor(seat: Seat, worker: Worker, peerOf: (occupant: Occupant) => WorkerPeer) {
    this.seat = seat;
    this.worker = worker;
    this.peer = peerOf(this);
    this.settled = new Promise((resolve) => {
      worker.on('listening', ({ port }) => port >= 0 && resolve(true));
      worker.once('exit', () => resolve(false));
    });
  }

  /** What its place is to be filled again for. */
  get causeOfDeath(): RestartCause {
    return this.#wasKilled ? 'unresponsive' : 'crash';
  }

  /** Whether the system could start it at all. */
  get wasStarted(): boolean {
    return this.worker.process.pid !== undefined;
  }

  /** Its counters and gauges, as JSON text. */
  async snapshot(): Promise<string> {
    return (await this.peer.call('snapshot', {})).text;
  }

  /** It has shown a sign of life. */
  heard(): void {
    this.#silentChecks = 0;
  }

  /** One check more. Returns whether it has been silent for too many. */
  isOverdue(): boolean {
    return ++this.#silentChecks > maxSilentChecks[this.state === 'starting' ? 'starting' : 'listening'];
  }

  /**
   * Resolves with its exit code when it has exited; by force, and with null, after `limitMs`; with `left` where even that
   * has not ended it in time.
   */
  exited(limitMs: number, clock: Clock): Promise<number | null | 'left'> {
    return new Promise((resolve) => {
      const stopTimers = [
        clock.after(limitMs, () => this.kill()),
        clock.after(limitMs + killLimitMs, () => resolve('left')),
      ];
      this.worker.once('exit', (code: number | null) => {
        for (const stopTimer of stopTimers) stopTimer();
        resolve(code);
      });
    });
  }

  /** At once: `worker.kill` would wait for a disconnect that a stuck worker never makes. */
  kill(): void {
    this.#wasKilled = true;
    this.worker.process.kill('SIGKILL');
  }
}

/** A place for one worker. Workers come and go; the place, its id and its count of restarts stay. */
export class Seat {
  readonly id: number;
  readonly policy = new RestartPolicy();
  occupant: Occupant | null = null;
  restarts = 0;

  constructor(id: number) {
    this.id = id;
  }
}
