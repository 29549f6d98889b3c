import { isDeepStrictEqual } from 'node:util';
import { holderOf } from '../../../shared/client.js';
import type { Clock, StopTimer } from '../../../shared/clock.js';
import type { CgroupUsage } from '../../../shared/process/cgroup.js';
import type { Capabilities, Consultation, LaunchOptions, Turn, TurnEnd } from '../contract/adapter.js';
import type { CliObserver } from '../contract/observer.js';
import {
  type CliLimits,
  CliProcess,
  type CliProcessParts,
  type ConversationState,
  continued,
  type SessionGuess,
} from '../process/cli-process.js';
import type { Launcher } from '../process/launcher.js';
import type { TextSink } from '../process/open-turn.js';
import {
  ConsultedProgram,
  type ConsultProgram,
  consultation,
  consultPlan,
  detached,
  type KnownProgram,
  type LaunchKey,
  launchKeyOf,
  untilExit,
} from '../process/program.js';
import { replayable } from '../process/replay.js';
import type { LaunchHistory } from './standby-policy.js';

/** Source of a job's process: the live session of its conversation, a standby process, or a new start. */
export type LeaseOrigin = 'live' | 'standby' | 'new';

/** Use of a CLI process by a job, which must release it. */
export interface CliLease {
  readonly process: CliProcess;
  readonly origin: LeaseOrigin;
  /** Time for which the process has waited for the results of its calls, milliseconds; null if it has made none. */
  readonly heldMs: number | null;
  /** Features of the program beside text. */
  readonly extras: Capabilities;
  /** Runs one turn, see `CliProcess.turn`. A live session does not get the history again. */
  turn(turn: Turn, sink: TextSink, signal: AbortSignal): Promise<TurnEnd>;
  /** Returns the resources used since the previous call; null if they are not measured. */
  usage(): CgroupUsage | null;
  /**
   * Keeps the process for this conversation if it can take another turn. Otherwise, or with null, ends the process.
   * Resolves when the processes that the job has used up or displaced have ended.
   */
  release(conversation: ConversationState | null): Promise<void>;
}

export interface PoolSettings extends SessionSettings {
  readonly limits: CliLimits;
}

export interface PoolParts {
  readonly launcher: Pick<Launcher, 'launch' | 'stop'>;
  readonly history: LaunchHistory;
  readonly clock: Clock;
  readonly observer: CliObserver;
  readonly redactor: CliProcessParts['redactor'];
  readonly callbacks: CliProcessParts['callbacks'];
  /** Ids of conversations that waiting jobs will continue. */
  readonly awaited: () => ReadonlySet<string>;
  /** Called when a process that serves jobs changes its state. */
  readonly onChange: () => void;
}

/** Process that waits for the next turn of its conversation. */
export interface Session extends IdleSession {
  readonly process: CliProcess;
  readonly conversation: ConversationState;
}

/** Process that was claimed for the next turn of its conversation. */
type LiveProcess = Pick<CliLease, 'process' | 'heldMs'> & Pick<ConversationState, 'callIds'>;

/** Time from the start of a turn for which standby processes that still start are paused, milliseconds. */
const headStartMs = 150;
/** Age above which a standby process is not paused, because its start is over or was delayed long enough. */
const maxPausedAgeMs = 500;

/**
 * Owns all processes of one model CLI. A process serves one job or one conversation, and is never shared with another.
 */
export class ProcessPool {
  readonly #settings: PoolSettings;
  readonly #parts: PoolParts;
  /** All processes, each with the key of its launch; null if it only answers a question about the program. */
  readonly #all = new Map<CliProcess, LaunchKey | null>();
  readonly #endingSessions = new Set<CliProcess>();
  #stopPauseTimer: StopTimer = () => {};
  /** Whether each process ends with its job, because its login is no longer used. */
  keepsNoSessions = false;

  constructor(settings: PoolSettings, parts: PoolParts) {
    this.#settings = settings;
    this.#parts = parts;
  }

  /** Processes that serve jobs or may serve one later, each with the key of its launch. */
  get processes(): readonly (readonly [process: CliProcess, key: LaunchKey])[] {
    return [...this.#all].flatMap(([process, key]) => (key === null ? [] : [[process, key] as const]));
  }

  /** Processes that wait for the next turn of their conversation, or for the results of its calls. */
  get sessions(): readonly Session[] {
    return [...this.#all.keys()].flatMap((process) => {
      const { state, sinceMs } = process;
      if (state.name !== 'idle' && state.name !== 'waiting_for_tools') return [];
      const { conversation } = state;
      const isWaiting = state.name === 'waiting_for_tools';
      const isAwaited = this.#parts.awaited().has(conversation.id);
      const { guess = null, client = guess?.client ?? '' } = conversation;
      return [{ process, conversation, sinceMs, isWaiting, isAwaited, guess, client }];
    });
  }

  /**
   * Returns a process for one job: the live session of the conversation, a standby process, or a new one. Rejects with
   * `spawn_error`, or with the signal's reason. `conversation` is null if the job has no conversation, or one that does
   * not exist yet.
   */
  async acquire(
    program: KnownProgram,
    launch: LaunchOptions,
    conversation: ConversationState | null,
    signal: AbortSignal,
  ): Promise<CliLease> {
    const { observer, clock, history } = this.#parts;
    const key = launchKeyOf(program, launch);
    const live = conversation === null ? null : this.#claimLive(key, conversation);
    if (conversation !== null) observer.liveSessionTaken(live === null ? 'replay' : 'hit');
    const { extras } = program.programVersion;
    if (live !== null) return this.#lease(live.process, 'live', extras, live);
    history.recordUse(key, launch, clock.monotonicMs());
    const waiting = this.#claimStandby(key);
    observer.standbyTaken(waiting === null ? 'miss' : 'hit');
    if (waiting !== null) return this.#lease(waiting, 'standby', extras);
    return this.#lease(await this.#start(program, key, launch, 'busy', signal), 'new', extras);
  }

  /** Starts a standby process for this launch. Rejects with `spawn_error`. */
  async startAhead(program: KnownProgram, launch: LaunchOptions): Promise<CliProcess> {
    return this.#start(program, launchKeyOf(program, launch), launch, 'standby');
  }

  /** Runs the program briefly to learn about it. Rejects with `spawn_error`. */
  async consult(...[path, args, input = '', isEnough, file]: Parameters<ConsultProgram>): Promise<Consultation> {
    const { launcher, clock } = this.#parts;
    const programVersion = new ConsultedProgram(isEnough);
    const process = this.#add(programVersion, null, 'busy');
    await process.start(launcher.launch({ program: path, plan: (place) => consultPlan(args, file, place) }));
    return consultation(process, programVersion, input, clock);
  }

  /**
   * Runs the program that renews its login, until it exits or `isDone` resolves. `lock`: path that exists during the
   * renewal. Rejects with `spawn_error`.
   */
  async renewLogin(
    { path, leading, programVersion }: KnownProgram,
    lock: string,
    isDone: Promise<void>,
  ): Promise<void> {
    const { args, input } = programVersion.renewal ?? { args: [], input: '' };
    const process = this.#add(new ConsultedProgram(() => false), null, 'busy');
    const [program, detachedArgs] = detached(path, [...leading, ...args], input);
    const plan = () => consultPlan(detachedArgs, undefined, '');
    await process.start(this.#parts.launcher.launch({ program, plan, renewalLock: lock }));
    await untilExit(process, isDone);
  }

  /** Whether a process waits for the next turn of this conversation. */
  hasSessionOf(conversationId: string): boolean {
    return this.sessions.some(({ conversation }) => conversation.id === conversationId);
  }

  /** Returns whether a living process waits for exactly this turn. */
  hasSessionFor(state: ConversationState): boolean {
    const session = this.sessions.find(({ conversation }) => conversation.id === state.id);
    return session !== undefined && canContinue(session, state) && session.process.isAlive;
  }

  /** Ends the process of a conversation that was deleted or replaced. */
  endSessionOf(conversationId: string): void {
    for (const session of this.sessions) if (session.conversation.id === conversationId) this.#endSession(session);
  }

  /** Ends the processes of all conversations of this client. */
  endSessionsOfClient(client: string): void {
    for (const session of this.sessions) if (session.conversation.client === client) this.#endSession(session);
  }

  /** Ends the sessions that exceed the maximum or are too old. Returns when the next one will be too old, monotonic. */
  endSpentSessions(): number {
    const { end, nextMs } = planSessions(this.sessions, this.#settings, this.#parts.clock.monotonicMs());
    for (const session of end) this.#endSession(session);
    return nextMs;
  }

  /** Ends all processes without a job, after the credential or the program has changed. */
  async endIdleProcesses(): Promise<void> {
    const waiting = [...this.#all.keys()].filter(isWaiting);
    await Promise.all(waiting.map((process) => process.retire()));
  }

  /** Prevents further starts. Resolves when all processes have ended. */
  async close(): Promise<void> {
    this.#parts.launcher.stop();
    await Promise.all([...this.#all.keys()].map((process) => process.end('shutting_down')));
  }

  /** Counts the processes, without consultations, by state. */
  counts(): Record<'standby' | 'live' | 'tools' | 'busy' | 'stopping', number> {
    const counts = { standby: 0, live: 0, tools: 0, busy: 0, stopping: 0 };
    for (const [{ state }, key] of this.#all) {
      if (key === null || state.name === 'gone' || state.name === 'starting') continue;
      counts[countedAs[state.name]]++;
    }
    return counts;
  }

  async #release(process: CliProcess, origin: LeaseOrigin, conversation: ConversationState | null): Promise<void> {
    if (origin === 'new' && process.startupMs !== null) this.#parts.observer.startedUp(process.startupMs);
    if (conversation !== null) this.endSessionOf(conversation.id);
    const mayStay = this.#settings.maxSessions > 0 && !this.keepsNoSessions;
    const stays = conversation !== null && mayStay && process.keepFor(conversation);
    if (!stays) return process.end('done');
    this.endSpentSessions();
    // If the slot became free before these have ended, programs that end slowly would accumulate turn by turn.
    await Promise.all([...this.#endingSessions].map(({ ended: gone }) => gone));
  }

  #claimLive(key: LaunchKey, state: ConversationState): LiveProcess | null {
    const session = this.sessions.find(({ conversation }) => conversation.id === state.id);
    if (session === undefined) return null;
    if (canContinue(session, state) && this.#all.get(session.process) === key) {
      const claimed = claimIfAlive(session.process);
      const { clock, observer } = this.#parts;
      if (claimed === null) return null;
      const heldMs = session.isWaiting ? clock.monotonicMs() - session.sinceMs : null;
      if (heldMs !== null) observer.toolsHeld(heldMs);
      return { process: claimed, heldMs, callIds: session.conversation.callIds };
    }
    this.#endSession(session);
    return null;
  }

  #claimStandby(key: LaunchKey): CliProcess | null {
    for (const [process, other] of this.#all) {
      if (other !== key || process.state.name !== 'standby') continue;
      const claimed = claimIfAlive(process);
      if (claimed === null) continue;
      this.#parts.history.recordSuccess(key);
      return claimed;
    }
    return null;
  }

  async #start(
    { path, leading, programVersion }: KnownProgram,
    key: LaunchKey,
    launch: LaunchOptions,
    next: 'standby' | 'busy',
    signal?: AbortSignal,
  ): Promise<CliProcess> {
    const plan = (systemPath: string) => {
      const { args, files } = programVersion.plan(launch, systemPath);
      return { args: [...leading, ...args], files };
    };
    const process = this.#add(programVersion, key, next);
    await process.start(this.#parts.launcher.launch({ program: path, plan }, signal));
    return process;
  }

  #add(programVersion: CliProcessParts['programVersion'], key: LaunchKey | null, next: 'standby' | 'busy'): CliProcess {
    const { clock, observer, redactor, callbacks } = this.#parts;
    // A process that only answers a question about the program has a time limit of its own.
    const limits = key === null ? { ...this.#settings.limits, stallMs: 0 } : this.#settings.limits;
    const parts = { programVersion, limits, clock, observer, redactor, callbacks };
    const process = new CliProcess(parts, next, (changed) => this.#changed(changed, key));
    this.#all.set(process, key);
    void process.ended.then(() => this.#all.delete(process));
    return process;
  }

  #changed({ state }: CliProcess, key: LaunchKey | null): void {
    const { history, clock, onChange } = this.#parts;
    if (key !== null && state.name === 'stopping' && state.hasDied) history.recordFailure(key, clock.monotonicMs());
    this.#pauseStarts();
    // A readiness check runs the program, too. The end of that process must not cause the next check.
    if (key !== null) onChange();
  }

  /**
   * While a turn begins, pauses programs that are being started in advance, because a start occupies a processor: a
   * further turn of a chat that begins with such a start takes 86 ms, and 101 ms without the pause (bench `claude`,
   * decision 11).
   */
  #pauseStarts(): void {
    const { clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    const processes = [...this.#all.keys()];
    const waiting = processes.filter(({ state }) => state.name === 'standby');
    const begun = processes.filter(({ state }) => state.name === 'busy' && state.turn !== null);
    const leftMs = Math.max(0, ...begun.map(({ sinceMs }) => sinceMs + headStartMs - nowMs));
    for (const process of waiting) {
      if (leftMs > 0 && nowMs - process.startedMs < maxPausedAgeMs) process.pause();
      else process.resume();
    }
    this.#stopPauseTimer();
    if (leftMs > 0 && waiting.length > 0) this.#stopPauseTimer = clock.after(leftMs, () => this.#pauseStarts());
  }

  #endSession({ process }: Session): void {
    this.#endingSessions.add(process);
    void process.end('retired').then(() => this.#endingSessions.delete(process));
  }

  #lease(
    process: CliProcess,
    origin: LeaseOrigin,
    extras: Capabilities,
    { heldMs, callIds }: Omit<LiveProcess, 'process'> = { heldMs: null },
  ): CliLease {
    return {
      process,
      origin,
      heldMs,
      extras,
      turn: (turn, sink, signal) =>
        process.turn(origin === 'live' ? continued(turn, callIds) : replayable(turn), sink, signal),
      usage: () => process.takeUsage(),
      release: (conversation) => this.#release(process, origin, conversation),
    };
  }
}

const countedAs = {
  standby: 'standby',
  idle: 'live',
  waiting_for_tools: 'tools',
  busy: 'busy',
  stopping: 'stopping',
} as const;

/**
 * Returns whether the process is at the point of the conversation at which the turn starts, and has its model, schema,
 * web search and open calls. Only the effort may differ.
 */
function canContinue({ conversation }: Session, { messageCount, launch, openCalls }: ConversationState): boolean {
  const isSame = (['model', 'schema', 'hasSearch'] as const).every(
    (option) => conversation.launch?.[option] === launch?.[option],
  );
  const hasResults = conversation.openCalls === undefined || isDeepStrictEqual(conversation.openCalls, openCalls);
  return conversation.messageCount === messageCount && isSame && hasResults;
}

function isWaiting({ state }: CliProcess): boolean {
  if (state.name === 'waiting_for_tools') return true;
  return state.name === 'standby' || state.name === 'idle' || (state.name === 'starting' && state.next === 'standby');
}

function claimIfAlive(process: CliProcess): CliProcess | null {
  if (!process.isAlive) {
    void process.retire();
    return null;
  }
  process.claim();
  return process;
}

/** Data of a session that decide whether it ends. */
export interface IdleSession {
  /** Time since which the session waits, monotonic. */
  readonly sinceMs: number;
  /** Whether the session waits for the results of calls. */
  readonly isWaiting: boolean;
  /** Whether a waiting job will continue this session. */
  readonly isAwaited: boolean;
  /** Kind of a session that may never be continued; null for a known conversation. */
  readonly guess: SessionGuess | null;
  /** Client to which the session belongs. */
  readonly client: string;
}

export interface SessionSettings {
  readonly maxSessions: number;
  /** Time without a turn after which a session ends, milliseconds. */
  readonly idleMs: number;
}

export interface SessionPlan<S extends IdleSession> {
  readonly end: readonly S[];
  /** When the next session will have been idle for too long, monotonic; infinite without sessions. */
  readonly nextMs: number;
}

/**
 * Returns the sessions to end: sessions that were idle for too long, and the least valuable ones beyond the maximum.
 */
export function planSessions<S extends IdleSession>(
  sessions: readonly S[],
  { maxSessions, idleMs }: SessionSettings,
  nowMs: number,
): SessionPlan<S> {
  const recent = sessions.filter(({ sinceMs }) => nowMs - sinceMs < idleMs);
  const left = mostWanted(recent, maxSessions).slice(0, maxSessions);
  return {
    end: sessions.filter((session) => !left.includes(session)),
    nextMs: Math.min(...left.map(({ sinceMs }) => sinceMs + idleMs)),
  };
}

/**
 * Sorts the sessions by value, the most valuable first. First come sessions that a waiting job will continue, then
 * sessions in the middle of a turn, whose end would lose more; each key holder has at most its share of these. Known
 * conversations follow, so that a single request never ends one. Then come questions, one of each client before the
 * second of any, so that a client with many questions loses its own, and then the sessions beyond a share. Side
 * requests and forced calls come last, because they are hardly ever continued.
 */
function mostWanted<S extends IdleSession>(sessions: readonly S[], maxSessions: number): readonly S[] {
  const newestFirst = sessions.toSorted((a, b) => b.sinceMs - a.sinceMs);
  const wanted = newestFirst.filter(({ isAwaited }) => isAwaited);
  const isHeld = ({ isWaiting, guess }: S) => isWaiting && guess?.kind !== 'call';
  const waiting = newestFirst.filter((session) => isHeld(session) && !session.isAwaited);
  const endable = newestFirst.filter((session) => !isHeld(session) && !session.isAwaited);
  const clients = [...new Set(sessions.map(({ client }) => client))];
  const share = maxSessions / new Set(clients.map(holderOf)).size;
  const [within, beyond] = splitByShare(waiting, share, clients);
  const of = (kind: string) => endable.filter(({ guess }) => (guess?.kind ?? 'conversation') === kind);
  return [
    ...wanted,
    ...within,
    ...of('conversation'),
    ...inTurnOfClients(of('question')),
    ...beyond,
    ...of('side'),
    ...of('call'),
  ];
}

/**
 * Splits the sessions. The first part has the sessions within the share of their key holder, which is divided equally
 * among its clients; each client has at least one. The second part has all other sessions.
 */
function splitByShare<S extends IdleSession>(sessions: readonly S[], share: number, clients: readonly string[]) {
  const counts = new Map<string, number>();
  const [within, beyond]: [S[], S[]] = [[], []];
  for (const session of sessions) {
    const { client } = session;
    const holder = holderOf(client);
    const siblings = clients.filter((other) => holderOf(other) === holder).length;
    const [ofHolder, ofClient] = [`${holder} together`, client].map((name) => counts.get(name) ?? 0) as [
      number,
      number,
    ];
    const isWithin = ofHolder + 1 <= Math.max(1, share) && ofClient + 1 <= Math.max(1, share / siblings);
    if (isWithin) counts.set(`${holder} together`, ofHolder + 1).set(client, ofClient + 1);
    (isWithin ? within : beyond).push(session);
  }
  return [within, beyond] as const;
}

/** Orders the sessions in rounds: the first of each client, then the second of each, and so on. */
function inTurnOfClients<S extends IdleSession>(sessions: readonly S[]): readonly S[] {
  const counts = new Map<string, number>();
  const ranked = sessions.map((session) => {
    const client = session.guess?.client ?? '';
    const rank = counts.get(client) ?? 0;
    counts.set(client, rank + 1);
    return { session, rank };
  });
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ session }) => session);
}
