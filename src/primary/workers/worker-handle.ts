import type { Worker } from 'node:cluster';
import { withLimit, withResolvers } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import { channelToWorker } from '../../shared/ipc/cluster-channel.js';
import { type Handlers, Peer } from '../../shared/ipc/peer.js';
import type { PrimaryCalls, WorkerCalls } from '../../shared/ipc/protocol.js';
import { describeError, type Logger } from '../../shared/log/logger.js';
import type { FamilyFigures } from '../../shared/metrics.js';

export type WorkerPeer = Peer<WorkerCalls, PrimaryCalls>;

type OwnCalls = 'listening' | 'heartbeat' | 'figures' | 'leaving' | 'broke';

/** Handlers of the calls that are the same for all workers. */
export type SharedHandlers = Omit<Handlers<PrimaryCalls>, OwnCalls>;
/** Handlers of the calls about the calling worker. */
export type OwnHandlers = Pick<Handlers<PrimaryCalls>, OwnCalls>;

/** Calls over the channel to a worker, including the calls of features. */
export interface ChannelCalls {
  /** Calls that the worker may make. */
  readonly calls: PrimaryCalls;
  readonly workerCalls: WorkerCalls;
}

/** Makes the primary's end of the channel to a worker. */
export function peerOf(
  worker: Worker,
  { calls, workerCalls }: ChannelCalls,
  shared: SharedHandlers,
  own: OwnHandlers,
  log: Logger,
): WorkerPeer {
  const onFault = (fault: unknown) => log.error('internal_error', { error: describeError(fault) });
  return new Peer(channelToWorker(worker), workerCalls, calls, { ...shared, ...own }, onFault);
}

const workerStates = ['starting', 'ready', 'stopping'] as const;
export type WorkerState = (typeof workerStates)[number];

export const restartCauses = ['crash', 'unresponsive', 'reload'] as const;
export type RestartCause = (typeof restartCauses)[number];

/**
 * Checks in a row without a heartbeat that a worker survives: before it listens, and afterwards. On an overloaded host, a start
 * takes tens of seconds, and a worker that is killed in its start begins again.
 */
const maxSilentChecks = { starting: 23, listening: 3 };
/**
 * Time for a killed process to exit. Only a wait in the kernel delays it, for example for a disk or a network share.
 */
const killLimitMs = 2000;

/** A worker, from its fork to its exit. */
export class WorkerHandle {
  readonly slot: WorkerSlot;
  readonly worker: Worker;
  readonly peer: WorkerPeer;
  #state: WorkerState = 'starting';
  #hasListened = false;
  #silentChecks = 0;
  #wasKilled = false;
  #announcedCode: number | null = null;
  readonly #exited = withResolvers<number | null>();
  readonly #settled = withResolvers<boolean>();
  /** Resolves with true when the worker listens, with false if it exits before. */
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

  /** Process id; null if the system could not start the process. */
  get pid(): number | null {
    return this.worker.process.pid ?? null;
  }

  /** Cause to report when a successor is started. */
  get causeOfDeath(): RestartCause {
    return this.#wasKilled ? 'unresponsive' : 'crash';
  }

  markListening(): void {
    if (this.#state === 'starting') this.#state = 'ready';
    this.#hasListened = true;
    this.#silentChecks = 0;
    this.#settled.resolve(true);
  }

  /** Marks the worker as stopping. */
  markStopping(): void {
    this.#state = 'stopping';
  }

  /** Records the exit code that the worker announced. */
  recordExitCode(code: number): void {
    this.#announcedCode = code;
  }

  /**
   * Records the exit. Returns the code that counts: the announced one if a signal has ended the process, unless the
   * primary killed it.
   */
  recordExit(code: number | null): number | null {
    const counted = code ?? (this.#wasKilled ? null : this.#announcedCode);
    this.#settled.resolve(false);
    this.#exited.resolve(counted);
    return counted;
  }

  /** Fetches what the worker has counted since the last fetch. */
  async fetchFigures(): Promise<readonly FamilyFigures[]> {
    return (await this.peer.call('figures', {})).families;
  }

  /** Restarts the count of checks without a heartbeat. */
  recordHeartbeat(): void {
    this.#silentChecks = 0;
  }

  /** Counts one check. Returns whether the worker has missed too many. */
  isOverdue(): boolean {
    return ++this.#silentChecks > maxSilentChecks[this.#state === 'starting' ? 'starting' : 'listening'];
  }

  /**
   * Resolves with the exit code. Kills the worker after `limitMs`; resolves with `left` if the process still does not
   * exit.
   */
  async exitedWithin(limitMs: number, clock: Clock): Promise<number | null | 'left'> {
    const stopTimer = clock.after(limitMs, () => this.kill());
    const code = await withLimit(this.#exited.promise, limitMs + killLimitMs, clock, () => 'left' as const);
    stopTimer();
    return code;
  }

  /** Kills the worker at once. `worker.kill` would wait for a disconnect, which a blocked worker never makes. */
  kill(): void {
    this.#wasKilled = true;
    this.worker.process.kill('SIGKILL');
  }
}

/** A place for one worker. A successor inherits the slot with its id and count of restarts. */
export class WorkerSlot {
  readonly id: number;
  readonly policy = new RestartPolicy();
  handle: WorkerHandle | null = null;
  restarts = 0;

  constructor(id: number) {
    this.id = id;
  }

  /** Returns the status entry for a worker in this state. */
  entry(state: WorkerState, pid: number | null) {
    return { id: this.id, pid, state, restarts: this.restarts };
  }
}

const firstDelayMs = 100;
const maxDelayMs = 5000;

/**
 * Backoff between failed starts: 0.1 s, doubled each time, up to 5 s. A worker that had listened is replaced at once.
 */
export class RestartPolicy {
  #failedStarts = 0;

  /** Returns the milliseconds to wait before the next start. */
  delayAfter(hadListened: boolean): number {
    if (hadListened) {
      this.#failedStarts = 0;
      return 0;
    }
    return Math.min(firstDelayMs * 2 ** this.#failedStarts++, maxDelayMs);
  }
}
