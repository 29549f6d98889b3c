import type { Worker } from 'node:cluster';
import { withResolvers } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import { channelToWorker, type Handlers, Peer } from '../../shared/ipc/peer.js';
import { type PrimaryCalls, primaryCalls, type WorkerCalls, workerCalls } from '../../shared/ipc/protocol.js';
import { describeError, type Logger } from '../../shared/log/logger.js';
import type { FamilyFigures } from '../../shared/metrics.js';

export type WorkerPeer = Peer<WorkerCalls, PrimaryCalls>;

type OwnCalls = 'listening' | 'heartbeat' | 'figures' | 'leaving';

/** Handlers of the calls that every worker is answered alike. */
export type SharedHandlers = Omit<Handlers<PrimaryCalls>, OwnCalls>;
/** Handlers of the calls that are about the worker itself. */
export type OwnHandlers = Pick<Handlers<PrimaryCalls>, OwnCalls>;

/** The primary's end of the channel to one worker. */
export function peerOf(worker: Worker, shared: SharedHandlers, own: OwnHandlers, log: Logger): WorkerPeer {
  const onFault = (fault: unknown) => log.error('internal_error', { error: describeError(fault) });
  return new Peer(channelToWorker(worker), workerCalls, primaryCalls, { ...shared, ...own }, onFault);
}

export const workerStates = ['starting', 'ready', 'stopping'] as const;
export type WorkerState = (typeof workerStates)[number];

export const restartCauses = ['crash', 'unresponsive', 'reload'] as const;
export type RestartCause = (typeof restartCauses)[number];

/** Checks without a heartbeat that a worker may miss: before it listens, and from then on. */
const maxSilentChecks = { starting: 5, listening: 3 };
/** A killed process is gone at once, unless it waits in the kernel: for a disk, say, or a network share. */
const killLimitMs = 2000;

/** One worker, from its fork to its exit. */
export class WorkerHandle {
  readonly slot: WorkerSlot;
  readonly worker: Worker;
  readonly peer: WorkerPeer;
  #state: WorkerState = 'starting';
  #hasListened = false;
  #silentChecks = 0;
  #wasKilled = false;
  #lastWord: number | null = null;
  readonly #exited = withResolvers<number | null>();
  readonly #settled = withResolvers<boolean>();
  /** Resolves with true when it listens, with false when it exits before. */
  readonly settled = this.#settled.promise;

  constructor(slot: WorkerSlot, worker: Worker, peerOf: (handle: WorkerHandle) => WorkerPeer) {
    this.slot = slot;
    this.worker = worker;
    this.peer = peerOf(this);
  }

  get state(): WorkerState {
    return this.#state;
  }

  get hasListened(): boolean {
    return this.#hasListened;
  }

  /** Null where the system could not start it. */
  get pid(): number | null {
    return this.worker.process.pid ?? null;
  }

  /** Why its slot is filled again. */
  get causeOfDeath(): RestartCause {
    return this.#wasKilled ? 'unresponsive' : 'crash';
  }

  listens(): void {
    if (this.#state === 'starting') this.#state = 'ready';
    this.#hasListened = true;
    this.#silentChecks = 0;
    this.#settled.resolve(true);
  }

  /** It has been told to go. */
  stops(): void {
    this.#state = 'stopping';
  }

  /** It exits now with this code, as it says itself. */
  leaves(code: number): void {
    this.#lastWord = code;
  }

  /** It has exited, or could not be started. Returns the code that counts: what it said of itself, where a signal has ended it since. */
  exits(code: number | null): number | null {
    const counted = code ?? (this.#wasKilled ? null : this.#lastWord);
    this.#settled.resolve(false);
    this.#exited.resolve(counted);
    return counted;
  }

  /** What it has counted since it was last asked. */
  async figures(): Promise<readonly FamilyFigures[]> {
    return (await this.peer.call('figures', {})).families;
  }

  /** A heartbeat has come. */
  beats(): void {
    this.#silentChecks = 0;
  }

  /** Counts one check more. Returns whether it has been silent for too many. */
  isOverdue(): boolean {
    return ++this.#silentChecks > maxSilentChecks[this.#state === 'starting' ? 'starting' : 'listening'];
  }

  /** Resolves with its exit code; after `limitMs` it is killed. Resolves with `left` where even that does not end it. */
  async exitedWithin(limitMs: number, clock: Clock): Promise<number | null | 'left'> {
    const stopTimer = clock.after(limitMs, () => this.kill());
    const left = new Promise<'left'>((resolve) => {
      const stopLastTimer = clock.after(limitMs + killLimitMs, () => resolve('left'));
      void this.#exited.promise.then(stopLastTimer);
    });
    const code = await Promise.race([this.#exited.promise, left]);
    stopTimer();
    return code;
  }

  /** At once: `worker.kill` would wait for a disconnect, which a worker that is stuck never makes. */
  kill(): void {
    this.#wasKilled = true;
    this.worker.process.kill('SIGKILL');
  }
}

/** A place for one worker. Workers come and go; the slot, its id and its count of restarts stay. */
export class WorkerSlot {
  readonly id: number;
  readonly policy = new RestartPolicy();
  handle: WorkerHandle | null = null;
  restarts = 0;

  constructor(id: number) {
    this.id = id;
  }

  /** How it is shown with a worker in this state. */
  entry(state: WorkerState, pid: number | null) {
    return { id: this.id, pid, state, restarts: this.restarts };
  }
}

const firstDelayMs = 100;
const maxDelayMs = 5000;

/** Backoff between starts in vain: 0.1 s, doubled each time, up to 5 s. A worker that had listened is replaced at once. */
export class RestartPolicy {
  #startsInVain = 0;

  /** Milliseconds to wait before the next start. */
  delayAfter(hadListened: boolean): number {
    if (hadListened) {
      this.#startsInVain = 0;
      return 0;
    }
    return Math.min(firstDelayMs * 2 ** this.#startsInVain++, maxDelayMs);
  }
}
