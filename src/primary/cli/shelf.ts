import type { Clock, StopTimer } from '../../shared/clock.js';
import type { TextDelta } from '../../shared/job.js';
import { orAborted } from '../../shared/or-aborted.js';
import type { Launch, Turn, TurnEnd } from './adapter.js';
import type { CliLauncher } from './cli-launcher.js';
import type { CliProcess } from './cli-process.js';
import type { CliProgram, KnownProgram } from './cli-program.js';
import { type ConversationState, LiveSessions, type LiveSettings } from './live-sessions.js';
import { type LaunchKey, Standby, type StandbySettings } from './standby.js';

export interface ShelfParts {
  readonly program: Pick<CliProgram, 'find'>;
  readonly launcher: Pick<CliLauncher, 'start' | 'size'>;
  readonly clock: Clock;
  readonly observer: ShelfObserver;
  /** Whether a process may be started in advance now, at nobody's expense. */
  readonly isCalm: () => boolean;
}

/** Hears where the processes of jobs come from. */
export interface ShelfObserver {
  /** A program that was started for a turn has written its first byte, this long after its start. */
  startedUp(ms: number): void;
  standbyTaken(result: 'hit' | 'miss'): void;
  liveSessionTaken(result: 'hit' | 'replay'): void;
}

/** Where a job's process comes from: its own conversation, those that wait for a launch, or a start just for it. */
type Origin = 'live' | 'waiting' | 'new';

/** How often the shelf is looked after; at most one process is started each time, so that starts never come in a crowd. */
const tendMs = 250;
/** A program that has written nothing for this long has started, and thinks. */
const bootMs = 1000;

/** Owns the model CLI processes between jobs: those that wait for a launch, and those that wait for their conversation. */
export class Shelf {
  readonly #parts: ShelfParts;
  readonly #standby: Standby;
  readonly #live: LiveSessions;
  /** Processes in the hands of jobs. */
  readonly #busy = new Set<CliProcess>();
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
    const known = await orAborted(this.#parts.program.find(), signal);
    const key = keyOf(known, launch);
    const live = conversation === null ? null : await unlessDead(this.#live.take(conversation, key));
    if (conversation !== null) this.#parts.observer.liveSessionTaken(live === null ? 'replay' : 'hit');
    if (live !== null) return this.#lease(live, key, 'live');
    const waiting = await unlessDead(this.#standby.take(key, launch));
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

  /**
   * For leases alone. `conversation` is the one that the process is to stay with, or null. Resolves when the processes
   * that the job has used up, or whose place it has taken, are gone.
   */
  giveBack({ process, key, origin }: CliLease, conversation: ConversationState | null): Promise<void> {
    this.#busy.delete(process);
    if (origin === 'new' && process.startupMs !== null) this.#parts.observer.startedUp(process.startupMs);
    const isKept = conversation !== null && process.isWaiting && !this.#live.isOff;
    return isKept ? this.#live.keep(conversation, key, process) : process.end('done');
  }

  #lease(process: CliProcess, key: LaunchKey, origin: Origin): CliLease {
    this.#busy.add(process);
    return new CliLease(process, key, origin, this);
  }

  async #startAhead(launch: Launch): Promise<CliProcess> {
    const known = await this.#parts.program.find();
    return this.#parts.launcher.start(known, launch, new AbortController().signal);
  }

  async #tend(): Promise<void> {
    this.#live.tend();
    if (this.#standby.isOff) return;
    const known = await this.#parts.program.find().catch(() => null);
    if (known === null) return;
    const keyOfLaunch = (launch: Launch) => keyOf(known, launch);
    this.#standby.coolOff(keyOfLaunch);
    if (!this.#isBooting() && this.#parts.isCalm()) this.#standby.refill(keyOfLaunch);
  }

  /** Whether a job waits for its program to start, which another start would slow down. */
  #isBooting(): boolean {
    const now = this.#parts.clock.monotonicMs();
    return [...this.#busy].some(({ startupMs, startedMs }) => startupMs === null && now - startedMs < bootMs);
  }
}

async function unlessDead(process: CliProcess | null): Promise<CliProcess | null> {
  if (process === null || (await process.isReady())) return process;
  void process.retire();
  return null;
}

/** Launches that start the same program with the same arguments and files are the same to it. */
function keyOf({ dialect, fingerprint }: KnownProgram, launch: Launch): LaunchKey {
  return JSON.stringify([fingerprint, dialect.plan(launch, 'system')]);
}

/** A process in the hands of one job. Disposed, it is ended with everything it started, unless it is to be kept. */
export class CliLease implements AsyncDisposable {
  readonly process: CliProcess;
  readonly key: LaunchKey;
  readonly origin: Origin;
  readonly #shelf: Shelf;
  #conversation: () => ConversationState | null = () => null;

  constructor(process: CliProcess, key: LaunchKey, origin: Origin, shelf: Shelf) {
    this.process = process;
    this.key = key;
    this.origin = origin;
    this.#shelf = shelf;
  }

  /** As `CliProcess.turn`. A live session has heard the history already. */
  turn(turn: Turn, signal: AbortSignal): AsyncGenerator<TextDelta | TurnEnd> {
    return this.process.turn(this.origin === 'live' ? { ...turn, history: [] } : turn, signal);
  }

  /** The turn is part of its conversation now: the process may stay for the next one, if there can be one then. */
  keepFor(conversation: () => ConversationState | null): void {
    this.#conversation = conversation;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#shelf.giveBack(this, this.#conversation());
  }
}
