import cluster, { type Worker } from 'node:cluster';
import type { Clock, StopTimer } from '../shared/clock.js';
import { channelToWorker } from '../shared/ipc/channel.js';
import type { Handlers } from '../shared/ipc/message.js';
import { Peer } from '../shared/ipc/peer.js';
import { type PrimaryCalls, primaryCalls, workerCalls } from '../shared/ipc/protocol.js';
import { describeError, type Logger } from '../shared/logger.js';
import type { Phase } from '../shared/phase.js';
import { Occupant, Seat, type WorkerPeer } from './seat.js';

export interface FleetEvents {
  /** A worker listens at this address; called for every one. */
  listening(address: { readonly host: string; readonly port: number }): void;
  /** No worker has ever listened and there is no hope that one will. */
  unavailable(reason: string): void;
}

const heartbeatCheckMs = 1000;
const maxSilentChecks = 10;
/** A worker that stops has this long to finish its open responses. */
const stopLimitMs = 3000;
/** Starts in vain, over all seats, before the service gives up; a worker whose address is taken says so at the first. */
const maxVainStarts = 8;
/** What a worker exits with when it can't listen (EX_UNAVAILABLE of sysexits.h). */
const cannotListen = 69;

/** Owns the workers: which live, what each is doing, when a dead one is replaced. */
export class Fleet {
  readonly #seats: readonly Seat[];
  readonly #handlers: Omit<Handlers<PrimaryCalls>, 'heartbeat'>;
  readonly #events: FleetEvents;
  readonly #clock: Clock;
  readonly #log: Logger;
  #stopChecks: StopTimer = () => {};
  #hasListened = false;
  #isStopping = false;
  #vainStarts = 0;

  constructor(
    size: number,
    handlers: Omit<Handlers<PrimaryCalls>, 'heartbeat'>,
    events: FleetEvents,
    clock: Clock,
    log: Logger,
  ) {
    this.#seats = Array.from({ length: size }, (_, index) => new Seat(index + 1));
    this.#handlers = handlers;
    this.#events = events;
    this.#clock = clock;
    this.#log = log;
  }

  start(workerProgram: string): void {
    // Workers accept for themselves: a connection that the primary hands to a worker that is dying is lost for ever.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({ exec: workerProgram });
    for (const seat of this.#seats) this.#fork(seat);
    this.#stopChecks = this.#clock.every(heartbeatCheckMs, () => this.#checkHeartbeats());
  }

  /** One entry a seat; a seat whose worker is being replaced is `starting`. */
  snapshot() {
    return this.#seats.map(({ id, occupant, restarts }) => ({
      id,
      pid: occupant?.worker.process.pid ?? null,
      state: occupant?.state ?? ('starting' as const),
      restarts,
    }));
  }

  /** Tells every worker; one that is gone meanwhile needs no word. */
  tell(phase: Phase): void {
    for (const { occupant } of this.#seats) occupant?.peer.one('phase', { phase }).catch(() => {});
  }

  /** Resolves when every worker has exited: after its open responses, or by force. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#stopChecks();
    await Promise.all(this.#seats.map(({ occupant }) => occupant && this.#retire(occupant)));
  }

  #retire(occupant: Occupant): Promise<void> {
    const exited = new Promise<void>((resolve) => occupant.worker.once('exit', () => resolve()));
    const stopKill = this.#clock.after(stopLimitMs, () => occupant.kill());
    occupant.state = 'stopping';
    occupant.peer.one('stop', {}).catch(() => {});
    return exited.finally(stopKill);
  }

  #fork(seat: Seat): void {
    const worker = cluster.fork();
    const occupant = new Occupant(
      worker,
      this.#peerOf(worker, () => occupant),
    );
    seat.occupant = occupant;
    worker.on('error', (error) => this.#log.error('internal_error', { error: describeError(error) }));
    worker.once('listening', ({ address, port }) => this.#listens(occupant, String(address), port));
    worker.once('exit', (code, signal) => this.#gone(seat, occupant, code, signal));
  }

  #peerOf(worker: Worker, occupant: () => Occupant): WorkerPeer {
    const handlers: Handlers<PrimaryCalls> = {
      ...this.#handlers,
      async *heartbeat() {
        occupant().silentChecks = 0;
        yield {};
      },
    };
    const onFault = (fault: unknown) => this.#log.error('internal_error', { error: describeError(fault) });
    return new Peer(channelToWorker(worker), workerCalls, primaryCalls, handlers, onFault);
  }

  #listens(occupant: Occupant, host: string, port: number): void {
    occupant.state = 'ready';
    occupant.listeningSinceMs = this.#clock.monotonicMs();
    this.#hasListened = true;
    this.#events.listening({ host, port });
  }

  #gone(seat: Seat, occupant: Occupant, code: number | null, signal: string | null): void {
    seat.occupant = null;
    if (this.#isStopping) return;
    this.#log.warn('worker_gone', { worker: seat.id, code, signal });
    if (!this.#hasListened && this.#isHopeless(code)) {
      return this.#events.unavailable(code === cannotListen ? 'the address can not be used' : 'workers can not start');
    }
    const now = this.#clock.monotonicMs();
    this.#clock.after(seat.policy.delayAfter(now - (occupant.listeningSinceMs ?? now)), () => this.#replace(seat));
  }

  #isHopeless(code: number | null): boolean {
    return code === cannotListen || ++this.#vainStarts >= maxVainStarts;
  }

  #replace(seat: Seat): void {
    if (this.#isStopping) return;
    seat.restarts++;
    this.#fork(seat);
  }

  /** Checks are counted, not timed: when this process was stopped itself, that is not held against the workers. */
  #checkHeartbeats(): void {
    for (const { id, occupant } of this.#seats) {
      if (occupant === null || occupant.state === 'starting' || ++occupant.silentChecks <= maxSilentChecks) continue;
      this.#log.error('worker_unresponsive', { worker: id });
      occupant.kill();
    }
  }
}
