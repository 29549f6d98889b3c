import type { Worker } from 'node:cluster';
import { RestartPolicy } from './restart-policy.js';
import type { WorkerPeer } from './worker-peer.js';

export type WorkerState = 'starting' | 'ready' | 'stopping';

export const restartCauses = ['crash', 'unresponsive', 'reload'] as const;
export type RestartCause = (typeof restartCauses)[number];

/** One worker, from its fork to its exit. */
export class Occupant {
  readonly seat: Seat;
  readonly worker: Worker;
  readonly peer: WorkerPeer;
  /** Resolves with true when it listens, with false when it exits before. */
  readonly settled: Promise<boolean>;
  state: WorkerState = 'starting';
  listeningSinceMs: number | null = null;
  /** Checks since the last heartbeat. */
  silentChecks = 0;
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

  /** Its counters and gauges, as JSON text. */
  async snapshot(): Promise<string> {
    return (await this.peer.call('snapshot', {})).text;
  }

  /** Resolves with its exit code when it has exited; by force, and with null, after `limitMs`. */
  exited(limitMs: number, after: (ms: number, action: () => void) => () => void): Promise<number | null> {
    const stopTimer = after(limitMs, () => this.kill());
    const exited = new Promise<number | null>((resolve) => this.worker.once('exit', resolve));
    return exited.finally(stopTimer);
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
