import type { Clock, StopTimer } from '../../shared/clock.js';
import type { TextDelta } from '../../shared/job.js';
import type { Launch, Turn, TurnEnd } from './adapter.js';
import type { CliLauncher } from './cli-launcher.js';
import type { CliObserver } from './cli-observer.js';
import type { CliProcess } from './cli-process.js';
import { type CliProgram, type KnownProgram, orAborted } from './cli-program.js';
import { type ConversationState, LiveSessions, type LiveSettings } from './live-sessions.js';
import { type LaunchKey, Standby, type StandbySettings } from './standby.js';

export interface ShelfParts {
  readonly program: CliProgram;
  readonly launcher: CliLauncher;
  readonly clock: Clock;
  readonly observer: CliObserver & ShelfObserver;
  /** Whether a process may be started in advance now, at nobody's expense. */
  readonly isCalm: () => boolean;
}

export interface ShelfObserver {
  standbyTaken(result: 'hit' | 'miss'): void;
  liveSessionTaken(result: 'hit' | 'replay'): void;
}

/** How often the shelf is looked after; at most one process is started each time, so that starts never come in a crowd. */
const tendMs = 250;

/** Owns the model CLI processes between jobs: those that wait for a launch, and those that wait for their conversation. */
export class Shelf {
  readonly #parts: ShelfParts;
  readonly #standby: Standby;
  readonly #live: LiveSessions;
  /** Processes in the hands of jobs; true while the program has not written anything yet. */
  readonly #busy = new Map<CliProcess, boolean>();
  #known: KnownProgram | null = null;
  #stopTending: StopTimer = () => {};

  constructor(standby: StandbySettings, live: LiveSettings, parts: ShelfParts) {
    this.#parts = parts;
    this.#standby = new Standby(standby, (launch) => this.#startAhead(launch), parts.clock);
    this.#live = new LiveSessions(live, parts.clock);
  }

  start(): void {
    this.#stopTending = this.#parts.clock.every(tendMs, () => void this.#tend());
  }

  /**
   * A process for one job: the conversation's own, one that waits, or a new one. Rejects with `spawn_error` or the
   * signal's reason. `conversation` is null for a job without one, or one that is not yet told apart.
   */
  async take(launch: Launch, conversation: ConversationState | null, signal: AbortSignal): Promise<CliLease> {
    const known = await orAborted(this.#find(), signal);
    const key = keyOf(known, launch);
    const live = conversation === null ? null : this.#live.take(conversation, key);
    if (conversation !== null) this.#parts.observer.liveSessionTaken(live === null ? 'replay' : 'hit');
    if (live !== null) return this.#lease(live, key, 'live');
    const waiting = this.#standby.take(key, launch);
    this.#parts.observer.standbyTaken(waiting === null ? 'miss' : 'hit');
    if (waiting !== null) return this.#lease(waiting, key, 'waiting');
    return this.#lease(await this.#parts.launcher.start(known, launch, signal), key, 'new');
  }

  /** The conversation is gone: so is its process. */
  forget(conversationId: string): void {
    this.#live.drop(conversationId);
  }

  /** Ends every process that waits: their credential, or their program, is no longer right. */
  async flush(): Promise<void> {
    await Promise.all([this.#standby.flush(), this.#live.flush()]);
  }

  async close(): Promise<void> {
    this.#stopTending();
    await Promise.all([this.#standby.close(), this.#live.flush()]);
  }

  /** Processes of jobs and of the shelf, by what they are doing; what is none of these is stopping. */
  counts(): Record<'standby' | 'live' | 'busy' | 'stopping', number> {
    const [standby, live, busy] = [this.#standby.size, this.#live.size, this.#busy.size];
    return { standby, live, busy, stopping: Math.max(0, this.#parts.launcher.size - standby - live - busy) };
  }

  /** For leases alone, as the next. */
  giveBack(process: CliProcess, key: LaunchKey, conversation: ConversationState | null): Promise<void> {
    this.#busy.delete(process);
    if (conversation === null || !process.isWaiting) return process.end('done');
    this.#live.keep(conversation, key, process);
    return Promise.resolve();
  }

  /** The program has begun to write. */
  hasStarted(process: CliProcess): void {
    if (!this.#busy.get(process)) return;
    this.#busy.set(process, false);
    this.#parts.observer.startedUp(this.#parts.clock.monotonicMs() - process.startedMs);
  }

  #lease(process: CliProcess, key: LaunchKey, origin: 'live' | 'waiting' | 'new'): CliLease {
    this.#busy.set(process, origin === 'new');
    return new CliLease(process, key, origin === 'live', this);
  }

  async #find(): Promise<KnownProgram> {
    this.#known = await this.#parts.program.find();
    return this.#known;
  }

  async #startAhead(launch: Launch): Promise<CliProcess> {
    return this.#parts.launcher.start(await this.#find(), launch, new AbortController().signal);
  }

  async #tend(): Promise<void> {
    this.#live.tend();
    if (this.#standby.isOff) return;
    const known = await this.#find().catch(() => null);
    if (known === null) return;
    const keyOfLaunch = (launch: Launch) => keyOf(known, launch);
    this.#standby.coolOff(keyOfLaunch);
    const isBooting = [...this.#busy.values()].includes(true);
    if (!isBooting && this.#parts.isCalm()) this.#standby.refill(keyOfLaunch);
  }
}

/** Launches that start the same program with the same arguments and files are the same to it. */
function keyOf({ dialect, fingerprint }: KnownProgram, launch: Launch): LaunchKey {
  return JSON.stringify([fingerprint, dialect.plan(launch, 'system')]);
}

/** A process in the hands of one job. Disposed, it is ended with everything it started, unless it is to be kept. */
export class CliLease implements AsyncDisposable {
  readonly #process: CliProcess;
  readonly #key: LaunchKey;
  readonly #isLive: boolean;
  readonly #shelf: Shelf;
  #conversation: ConversationState | null = null;

  constructor(process: CliProcess, key: LaunchKey, isLive: boolean, shelf: Shelf) {
    this.#process = process;
    this.#key = key;
    this.#isLive = isLive;
    this.#shelf = shelf;
  }

  /** As `CliProcess.turn`. A live session has heard the history already. */
  async *turn(turn: Turn, signal: AbortSignal): AsyncGenerator<TextDelta | TurnEnd> {
    for await (const event of this.#process.turn(this.#isLive ? { ...turn, history: [] } : turn, signal)) {
      this.#shelf.hasStarted(this.#process);
      yield event;
    }
  }

  /** The turn is part of its conversation now: the process may stay for the next one. */
  keepFor(conversation: ConversationState): void {
    this.#conversation = conversation;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#shelf.giveBack(this.#process, this.#key, this.#conversation);
  }
}
