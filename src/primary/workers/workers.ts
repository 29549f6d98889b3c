import cluster, { type Worker } from 'node:cluster';
import { withLimit } from '../../shared/async.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { contained } from '../../shared/contained.js';
import { describeError, type Logger, stdoutFd } from '../../shared/log/logger.js';
import type { FamilyFigures } from '../../shared/metrics.js';
import { closingFailed } from '../../shared/node-internals/spawned-children.js';
import { workerExits } from '../../shared/phase.js';
import {
  type ChannelCalls,
  peerOf,
  type RestartCause,
  type SharedHandlers,
  WorkerHandle,
  WorkerSlot,
  type WorkerState,
} from './worker-handle.js';

export interface WorkersSettings extends ChannelCalls {
  readonly size: number;
  /** Longest duration of an answer in milliseconds. A replaced worker gets this long to finish its answers. */
  readonly maxExchangeMs: number;
  /** Descriptors of the listening addresses. Every worker inherits them, so they stay open if no worker lives. */
  readonly fds: readonly number[];
}

/** Receives the events of the workers. */
export interface WorkersObserver {
  /** Called for each worker when it listens. */
  workerListening(worker: WorkerHandle): void;
  /** Called if no worker has ever listened, and the primary has given up starting them. */
  workersUnavailable(reason: string): void;
  /** Called with what a worker has counted since the last call. */
  figuresReported(worker: WorkerHandle, families: readonly FamilyFigures[]): void;
  workerLeft(worker: WorkerHandle): void;
  workerRestarted(cause: RestartCause): void;
  /** A worker had an exception that nothing caught. */
  workerFailed(): void;
}

const heartbeatCheckMs = 2500;
/** Longest time that a call to all workers waits for their answers. */
const answerLimitMs = 1000;
/** Time that a worker gets to exit after its limit. */
const exitLimitMs = 1000;
/**
 * Failed starts of all slots before the service gives up. A worker that cannot listen ends the service at its first
 * start.
 */
const maxFailedStarts = 8;

/**
 * Size of each half of V8's young generation, in megabytes. By default, V8 lets it grow to 16; with 1, a busy worker
 * spends a fifth of its time on garbage collection.
 */
const youngGeneration = '--max-semi-space-size=4';

/** Owns the workers, their states and their replacement. */
export class Workers {
  readonly #settings: WorkersSettings;
  readonly #slots: readonly WorkerSlot[];
  readonly #living = new Set<WorkerHandle>();
  readonly #observer: WorkersObserver;
  readonly #clock: Clock;
  readonly #log: Logger;
  #handlers: SharedHandlers | null = null;
  #stopChecks: StopTimer = () => {};
  #rolling: Promise<unknown> = Promise.resolve();
  #hasListened = false;
  #isStopping = false;
  #failedStarts = 0;
  #nextPeer = 0;

  constructor(settings: WorkersSettings, observer: WorkersObserver, clock: Clock, log: Logger) {
    this.#settings = settings;
    this.#slots = Array.from({ length: settings.size }, (_, index) => new WorkerSlot(index + 1));
    this.#observer = observer;
    this.#clock = clock;
    this.#log = log;
  }

  /** Starts the workers. `handlers` answer their calls. `execArgv` is added to the Node options of this process. */
  start(workerProgram: string, handlers: SharedHandlers, execArgv: readonly string[] = []): void {
    this.#handlers = handlers;
    // Each worker accepts connections itself: a connection that the primary passed to a stopped or dying worker would
    // be lost.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    const stdio = ['ignore', 'ignore', 'pipe', 'ipc', stdoutFd, ...this.#settings.fds] as const;
    const options = [...process.execArgv, youngGeneration, ...execArgv];
    cluster.setupPrimary({ exec: workerProgram, args: [], execArgv: options, stdio: [...stdio] });
    for (const slot of this.#slots) this.#fillSlot(slot);
    this.#stopChecks = this.#clock.every(heartbeatCheckMs, () => this.#checkHeartbeats());
  }

  /** Returns one entry per live worker, and one per slot that waits for its next worker. */
  snapshot() {
    const vacant = this.#slots.filter(({ handle }) => handle === null);
    return [
      ...[...this.#living].map(({ slot, state, pid }) => slot.entry(state, pid)),
      ...vacant.map((slot) => slot.entry('starting', null)),
    ].sort((a, b) => a.id - b.id);
  }

  /** Counts the workers by state. */
  counts(): Record<WorkerState, number> {
    const counts = { starting: 0, ready: 0, stopping: 0 };
    for (const { state } of this.snapshot()) counts[state]++;
    return counts;
  }

  /**
   * Calls every live worker. A worker that fails a call would keep an old state, such as a removed key: it is replaced.
   * Resolves when all that listen have answered, or after a second: no request waits longer for a worker that hangs.
   */
  async callAll(call: (peer: WorkerHandle['peer']) => Promise<unknown>): Promise<void> {
    const calls = [...this.#living].map((handle) => {
      const answered = call(handle.peer).catch((error: unknown) => this.#onFailedCall(handle, error));
      return handle.state === 'starting' ? null : answered; // it reads the call before its first request
    });
    await withLimit(Promise.all(calls), answerLimitMs, this.#clock);
  }

  #onFailedCall(handle: WorkerHandle, error: unknown): void {
    this.#clock.after(exitLimitMs, () => {
      if (!this.#living.has(handle)) return; // a worker that exits needs no message
      this.#log.error('internal_error', { error: describeError(error) });
      handle.kill();
    });
  }

  /** Returns the channel to a worker that listens, each time to the next one; null if there is none. */
  nextPeer(): WorkerHandle['peer'] | null {
    const ready = [...this.#living].filter(({ state }) => state === 'ready');
    return ready[this.#nextPeer++ % ready.length]?.peer ?? null;
  }

  /**
   * Replaces the workers one by one: each successor listens before its predecessor stops. Resolves with whether all
   * replacements succeeded.
   */
  replaceAll(): Promise<boolean> {
    const replaced = this.#rolling.then(async () => {
      const hasSuccessor: boolean[] = [];
      for (const slot of this.#slots) hasSuccessor.push(await this.#replaceWorker(slot));
      return hasSuccessor.every(Boolean);
    });
    this.#rolling = replaced;
    return replaced;
  }

  /**
   * Retires all workers without successors: no new connections are accepted. Resolves when the last worker has exited.
   */
  async retireAll(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([...this.#living].map((handle) => this.#retire(handle)));
  }

  /**
   * Stops all workers. Resolves when each has exited or was given up, with whether all answers were sent. May be called
   * again.
   */
  async stop(limitMs: number): Promise<boolean> {
    this.#isStopping = true;
    this.#stopChecks();
    const sent = await Promise.all([...this.#living].map((handle) => this.#stop(handle, limitMs)));
    return sent.every(Boolean);
  }

  async #stop(handle: WorkerHandle, limitMs: number): Promise<boolean> {
    handle.markStopping();
    handle.peer.call('stop', { limitMs }).catch(() => {});
    const code = await handle.exitedWithin(limitMs + exitLimitMs, this.#clock);
    if (code === 'left') this.#log.error('worker_unresponsive', { worker: handle.slot.id });
    return code === workerExits.clean || !handle.hasListened;
  }

  /** Replaces the worker of a slot. Returns whether the slot has, or will get, a worker started after this call. */
  async #replaceWorker(slot: WorkerSlot, cause: RestartCause = 'reload'): Promise<boolean> {
    if (this.#isStopping) return false;
    if (slot.handle === null) return true; // a restart is already scheduled
    const successor = this.#fork(slot);
    const listens = successor !== null && (await successor.settled);
    if (this.#isStopping) return false;
    if (!listens) {
      this.#log.error('reload_failed', { worker: slot.id });
      return false;
    }
    this.#giveSlot(slot, successor, cause);
    return true;
  }

  /**
   * Gives the slot to the successor, and retires the worker that has the slot now. While the successor started, the
   * worker to be replaced may have died, and another one may have got the slot.
   */
  #giveSlot(slot: WorkerSlot, successor: WorkerHandle, cause: RestartCause): void {
    const predecessor = slot.handle;
    slot.handle = successor;
    slot.restarts++;
    this.#observer.workerRestarted(cause);
    if (predecessor !== null) void this.#retire(predecessor);
  }

  /**
   * Replaces a worker after an uncaught exception, as a reload does, so that its open requests finish. Does nothing
   * while as many replaced workers as the service has workers (`size`) still finish answers, so that repeated
   * exceptions fill no memory.
   */
  #onUncaughtException(handle: WorkerHandle): void {
    this.#observer.workerFailed();
    this.#rolling = this.#rolling.then(async () => {
      const isReplaced = handle.slot.handle !== handle;
      if (!isReplaced && this.counts().stopping < this.#settings.size) await this.#replaceWorker(handle.slot, 'crash');
    });
  }

  /** Retires a worker, which accepts no new connection and exits when its last exchange has ended. */
  #retire(handle: WorkerHandle): Promise<unknown> {
    const { maxExchangeMs } = this.#settings;
    handle.markStopping();
    handle.peer.call('retire', { limitMs: maxExchangeMs }).catch(() => {});
    return handle.exitedWithin(maxExchangeMs + exitLimitMs, this.#clock);
  }

  #fillSlot(slot: WorkerSlot): void {
    slot.handle = this.#fork(slot);
    if (slot.handle === null) this.#refillSlot(slot, 'crash', false, null);
  }

  /** Forks a worker; null if the system refuses at once. */
  #fork(slot: WorkerSlot): WorkerHandle | null {
    try {
      const worker = closingFailed(() => cluster.fork());
      return this.#handleOf(slot, worker);
    } catch (error) {
      this.#log.error('worker_start_failed', { worker: slot.id, error: (error as Error).message });
      return null;
    }
  }

  #handleOf(slot: WorkerSlot, worker: Worker): WorkerHandle {
    const shared = this.#handlers ?? neverStarted();
    const peerFor = (self: WorkerHandle) => peerOf(worker, this.#settings, shared, this.#handlersOf(self), this.#log);
    const handle = new WorkerHandle(slot, worker, peerFor);
    const onFault = (fault: unknown) => this.#log.error('internal_error', { error: describeError(fault) });
    const onError = (error: Error) => this.#onWorkerError(handle, error);
    const onExit = (code: number | null, signal: string | null) => this.#onExit(handle, code, signal);
    worker.on('error', contained(onError, onFault)).once('exit', contained(onExit, onFault));
    const { stderr } = worker.process;
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#log.error('worker_output', { worker: slot.id, text });
    });
    this.#living.add(handle);
    return handle;
  }

  #handlersOf(handle: WorkerHandle) {
    return {
      heartbeat: () => handle.recordHeartbeat(),
      broke: () => this.#onUncaughtException(handle),
      leaving: ({ code }: { readonly code: number }) => handle.recordExitCode(code),
      figures: ({ families }: { readonly families: readonly FamilyFigures[] }) =>
        this.#observer.figuresReported(handle, families),
      listening: () => {
        handle.markListening();
        this.#hasListened = true;
        this.#observer.workerListening(handle);
      },
    };
  }

  /**
   * Handles a worker error. For a worker that could not be started, Node emits no exit event, and leaves it in
   * `cluster.workers`.
   */
  #onWorkerError(handle: WorkerHandle, error: Error): void {
    if (handle.pid !== null) return this.#log.error('internal_error', { error: describeError(error) });
    this.#log.error('worker_start_failed', { worker: handle.slot.id, error: error.message });
    delete cluster.workers?.[handle.worker.id];
    this.#onExit(handle, null, null);
  }

  #onExit(handle: WorkerHandle, code: number | null, signal: string | null): void {
    const { slot, pid, state } = handle;
    if (!this.#living.delete(handle)) return;
    const counted = handle.recordExit(code);
    this.#observer.workerLeft(handle);
    const hadSlot = slot.handle === handle; // false if it had a successor, or never got the slot
    const wasCut = state === 'stopping' && counted !== workerExits.clean;
    if (hadSlot) slot.handle = null;
    if (this.#isStopping) return;
    if (pid !== null && (hadSlot || wasCut)) this.#log.warn('worker_gone', { worker: slot.id, code, signal });
    if (hadSlot) this.#refillSlot(slot, handle.causeOfDeath, handle.hasListened, code);
  }

  #refillSlot(slot: WorkerSlot, cause: RestartCause, hadListened: boolean, code: number | null): void {
    if (!this.#hasListened && this.#isHopeless(code)) {
      const isAddress = code === workerExits.cannotListen;
      return this.#observer.workersUnavailable(isAddress ? 'the address cannot be used' : 'no worker can start');
    }
    const delayMs = slot.policy.delayAfter(hadListened);
    if (delayMs === 0) this.#restart(slot, cause);
    else this.#clock.after(delayMs, () => this.#restart(slot, cause));
  }

  #isHopeless(code: number | null): boolean {
    return code === workerExits.cannotListen || ++this.#failedStarts >= maxFailedStarts;
  }

  #restart(slot: WorkerSlot, cause: RestartCause): void {
    if (this.#isStopping || slot.handle !== null) return; // a reload may have filled it
    slot.restarts++;
    this.#observer.workerRestarted(cause);
    this.#fillSlot(slot);
  }

  /**
   * Kills workers that have missed too many checks. Checks are counted, not timed, so that a stall of the primary is
   * not blamed on the workers.
   */
  #checkHeartbeats(): void {
    for (const handle of this.#living) {
      if (!handle.isOverdue()) continue;
      this.#log.error('worker_unresponsive', { worker: handle.slot.id });
      handle.kill();
    }
  }
}

function neverStarted(): never {
  throw new Error('the workers have not been started');
}
