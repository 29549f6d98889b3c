import type { Worker } from 'node:cluster';
import type { Peer } from '../shared/ipc/peer.js';
import type { PrimaryCalls, WorkerCalls } from '../shared/ipc/protocol.js';
import { RestartPolicy } from './restart-policy.js';

export type WorkerPeer = Peer<WorkerCalls, PrimaryCalls>;
export type WorkerState = 'starting' | 'ready' | 'stopping';

/** One worker in its place of the fleet, from its fork to its exit. */
export class Occupant {
  readonly worker: Worker;
  readonly peer: WorkerPeer;
  state: WorkerState = 'starting';
  listeningSinceMs: number | null = null;
  /** Checks since the last heartbeat. */
  silentChecks = 0;

  constructor(worker: Worker, peer: WorkerPeer) {
    this.worker = worker;
    this.peer = peer;
  }

  /** At once: `worker.kill` would wait for a disconnect that a stuck worker never makes. */
  kill(): void {
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
