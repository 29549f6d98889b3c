import cluster, { type Worker } from 'node:cluster';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { workerExits } from '../../shared/exit-codes.js';
import { describeError, type Logger } from '../../shared/logger.js';
import type { Phase } from '../../shared/phase.js';
import type { FleetEvents } from './fleet-events.js';
import { Occupant, type RestartCause, Seat, type WorkerState } from './seat.js';
import { peerOf, type SharedHandlers } from './worker-peer.js';

export interface FleetSettings {
  readonly size: number;
  /** The longest that an answer can take, milliseconds: what a worker that is replaced gets to finish what it has begun. */
  readonly maxExchangeMs: number;
  /** Sockets that systemd listens on: each worker inherits them, so that none is lost with the last worker. */
  readonly passedFds: readonly number[];
}

/** How a seat came to be empty. */
interface Loss {
  readonly cause: RestartCause;
  readonly code: number | null;
  readonly listenedMs: number;
}

const heartbeatCheckMs = 1000;
/** A worker that has been told to go has this long beyond the time that it was given. */
const exitLimitMs = 1000;
/** Starts in vain, over all seats, before the service gives up; a worker whose address is taken says so at the first. */
const maxVainStarts = 8;

/** Owns the workers: which live, what each is doing, when one is replaced. */
export class Fleet {
  readonly #settings: FleetSettings;
  readonly #seats: readonly Seat[];
  readonly #living = new Set<Occupant>();
  readonly #handlers: SharedHandlers;
  readonly #events: FleetEvents;
  readonly #clock: Clock;
  readonly #log: Logger;
  #stopChecks: StopTimer = () => {};
  #rolling: Promise<unknown> = Promise.resolve();
  #hasListened = false;
  #isStopping = false;
  #vainStarts = 0;

  constructor(settings: FleetSettings, handlers: SharedHandlers, events: FleetEvents, clock: Clock, log: Logger) {
    this.#settings = settings;
    this.#seats = Array.from({ length: settings.size }, (_, index) => new Seat(index + 1));
    this.#handlers = handlers;
    this.#events = events;
    this.#clock = clock;
    this.#log = log;
  }

  start(workerProgram: string): void {
    // Each worker accepts for itself: a connection that the primary hands to one that is stopped or dies would be lost.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({ exec: workerProgram, args: [], stdio: [0, 1, 2, 'ipc', ...this.#settings.passedFds] });
    for (const seat of this.#seats) this.#fill(seat);
    this.#stopChecks = this.#clock.every(heartbeatCheckMs, () => this.#checkHeartbeats());
  }

  /** One entry a living worker, and one a seat that waits for its next worker. */
  snapshot() {
    const vacant = this.#seats.filter(({ occupant }) => occupant === null);
    return [
      ...[...this.#living].map((occupant) => entry(occupant.seat, occupant.state, occupant.worker.process.pid ?? null)),
      ...vacant.map((seat) => entry(seat, 'starting', null)),
    ].sort((a, b) => a.id - b.id);
  }

  /** Workers by what they are doing. */
  counts(): Record<WorkerState, number> {
    const counts = { starting: 0, ready: 0, stopping: 0 };
    for (const { state } of this.snapshot()) counts[state]++;
    return counts;
  }

  /** Tells every worker; one that is gone meanwhile needs no word. */
  tell(phase: Phase): void {
    for (const { peer } of this.#living) peer.call('phase', { phase }).catch(() => {});
  }

  /** Replaces the workers one by one: each successor listens before its predecessor stops. Resolves with whether all have one. */
  replaceAll(): Promise<boolean> {
    const replaced = this.#rolling.then(async () => {
      const hasSuccessor: boolean[] = [];
      for (const seat of this.#seats) hasSuccessor.push(await this.#succeed(seat));
      return hasSuccessor.every(Boolean);
    });
    this.#rolling = replaced;
    return replaced;
  }

  /**
   * Resolves when every worker has exited, or has been left because no force ends it: with whether all that was answered
   * has been sent. May be called again, for less time.
   */
  async stop(limitMs: number): Promise<boolean> {
    this.#isStopping = true;
    this.#stopChecks();
    const sent = await Promise.all([...this.#living].map((occupant) => this.#stop(occupant, limitMs)));
    return sent.every(Boolean);
  }

  async #stop(occupant: Occupant, limitMs: number): Promise<boolean> {
    const hadListened = occupant.listeningSinceMs !== null;
    occupant.state = 'stopping';
    occupant.peer.call('stop', { limitMs }).catch(() => {});
    const code = await occupant.exited(limitMs + exitLimitMs, this.#clock);
    if (code === 'left') this.#log.error('worker_unresponsive', { worker: occupant.seat.id });
    return code === workerExits.clean || !hadListened;
  }

  /** Returns whether the seat has a worker that is younger than this call. */
  async #succeed(seat: Seat): Promise<boolean> {
    if (this.#isStopping) return false;
    if (seat.occupant === null) return true; // it is filled anew anyway
    const successor = this.#fork(seat);
    const listens = successor !== null && (await successor.settled);
    if (this.#isStopping) return false;
    if (!listens) {
      this.#log.error('reload_failed', { worker: seat.id });
      return false;
    }
    this.#replace(seat, successor);
    return true;
  }

  /** Whoever sits there by now: the one that sat there may have died meanwhile, and another be about to start. */
  #replace(seat: Seat, successor: Occupant): void {
    const predecessor = seat.occupant;
    seat.occupant = successor;
    seat.restarts++;
    this.#events.restarted('reload');
    if (predecessor !== null) this.#retire(predecessor);
  }

  /** It takes no new connection, and is gone when its last exchange has ended. */
  #retire(occupant: Occupant): void {
    const { maxExchangeMs } = this.#settings;
    occupant.state = 'stopping';
    occupant.peer.call('retire', { limitMs: maxExchangeMs }).catch(() => {});
    void occupant.exited(maxExchangeMs + exitLimitMs, this.#clock);
  }

  #fill(seat: Seat): void {
    seat.occupant = this.#fork(seat);
    if (seat.occupant === null) this.#refillLater(seat, { cause: 'crash', code: null, listenedMs: 0 });
  }

  /** Null where the system refuses at once. */
  #fork(seat: Seat): Occupant | null {
    const worker = this.#forkWorker(seat);
    if (worker === null) return null;
    const occupant = new Occupant(seat, worker, (self) =>
      peerOf(worker, this.#handlers, (snapshot) => this.#heard(self, snapshot), this.#log),
    );
    this.#living.add(occupant);
    worker.on('error', (error) => this.#failed(occupant, error));
    worker.on('listening', ({ address, port }) => this.#listens(occupant, String(address), port));
    worker.once('exit', (code, signal) => this.#gone(occupant, code, signal));
    return occupant;
  }

  #forkWorker(seat: Seat): Worker | null {
    try {
      return cluster.fork();
    } catch (error) {
      this.#log.error('worker_start_failed', { worker: seat.id, error: (error as Error).message });
      return null;
    }
  }

  /** Of a worker that could not be started, Node tells no exit: it is told here, to Node as well. */
  #failed(occupant: Occupant, error: Error): void {
    if (occupant.wasStarted) return this.#log.error('internal_error', { error: describeError(error) });
    this.#log.error('worker_start_failed', { worker: occupant.seat.id, error: error.message });
    occupant.worker.process.emit('exit', null, null);
  }

  #heard(occupant: Occupant, snapshot: string): void {
    occupant.heard();
    this.#events.heard(occupant, snapshot);
  }

  /** A Unix socket, which has no port, is listened to before the TCP port: only then is the worker ready. */
  #listens(occupant: Occupant, host: string, port: number): void {
    if (port < 0) return this.#events.socketOpened(host);
    if (occupant.state === 'starting') occupant.state = 'ready';
    occupant.heard();
    occupant.listeningSinceMs = this.#clock.monotonicMs();
    this.#hasListened = true;
    this.#events.joined(occupant);
    this.#events.listening({ host, port });
  }

  #gone(occupant: Occupant, code: number | null, signal: string | null): void {
    const { seat } = occupant;
    this.#living.delete(occupant);
    this.#events.left(occupant);
    const hadSeat = seat.occupant === occupant; // else it had a successor, or never came to sit
    const wasCut = occupant.state === 'stopping' && code !== workerExits.clean;
    if (hadSeat) seat.occupant = null;
    if (this.#isStopping) return;
    if (occupant.wasStarted && (hadSeat || wasCut)) this.#log.warn('worker_gone', { worker: seat.id, code, signal });
    if (!hadSeat) return;
    const now = this.#clock.monotonicMs();
    const listenedMs = now - (occupant.listeningSinceMs ?? now);
    this.#refillLater(seat, { cause: occupant.causeOfDeath, code, listenedMs });
  }

  #refillLater(seat: Seat, { cause, code, listenedMs }: Loss): void {
    if (!this.#hasListened && this.#isHopeless(code)) {
      return this.#events.unavailable(
        code === workerExits.cannotListen ? 'the address cannot be used' : 'no worker can start',
      );
    }
    this.#clock.after(seat.policy.delayAfter(listenedMs), () => this.#restart(seat, cause));
  }

  #isHopeless(code: number | null): boolean {
    return code === workerExits.cannotListen || ++this.#vainStarts >= maxVainStarts;
  }

  #restart(seat: Seat, cause: RestartCause): void {
    if (this.#isStopping || seat.occupant !== null) return; // a reload may have filled it
    seat.restarts++;
    this.#events.restarted(cause);
    this.#fill(seat);
  }

  /** Checks are counted, not timed: when this process was stopped itself, that is not held against the workers. */
  #checkHeartbeats(): void {
    for (const occupant of this.#living) {
      if (!occupant.isOverdue()) continue;
      this.#log.error('worker_unresponsive', { worker: occupant.seat.id });
      occupant.kill();
    }
  }
}

function entry({ id, restarts }: Seat, state: WorkerState, pid: number | null) {
  return { id, pid, state, restarts };
}
