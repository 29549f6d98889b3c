import type { ClientText } from '../../../shared/client.js';
import type { Clock } from '../../../shared/clock.js';
import type { RenewalFault } from '../../../shared/health.js';
import type { CgroupUsage } from '../../../shared/process/cgroup.js';
import type { Capabilities, Consultation, LaunchOptions, ProgramVersion, Turn, TurnEnd } from '../contract/adapter.js';
import type { CliObserver } from '../contract/observer.js';
import {
  type CliLimits,
  CliProcess,
  type CliProcessParts,
  type ConversationState,
  continued,
  partlyContinued,
} from '../process/cli-process.js';
import type { Launcher } from '../process/launcher.js';
import type { TurnSink } from '../process/open-turn.js';
import {
  ConsultedProgram,
  type ConsultProgram,
  consultation,
  consultPlan,
  detached,
  type KnownProgram,
  type LaunchKey,
  launchKeyOf,
  openTrial,
  untilExit,
} from '../process/program.js';
import type { Tenant } from '../process/renewal.js';
import { replayable } from '../process/replay.js';
import { canContinue, isRenewed, isWaiting, mayServe, sessionToRewind } from './fitting.js';
import { RenewalTrust, shortOfMemory } from './renewal-trust.js';
import { RenewalsUnderWay } from './renewals-under-way.js';
import { planSessions, type SessionSettings } from './session-policy.js';
import { isLeft, type LiveSession, type Session, sessionsOf } from './sessions.js';
import type { LaunchHistory } from './standby-policy.js';
import { StartPauses } from './start-pauses.js';
import { countStates, type StateCounts } from './state-counts.js';

/**
 * Source of a job's process: the live session of its conversation, the session of another conversation with the same
 * beginning, a renewed process of its client, a standby process, or a new start.
 */
export type LeaseOrigin = 'live' | 'rewound' | 'renewed' | 'standby' | 'new';

/** Use of a CLI process by a job, which must release it. */
export interface CliLease {
  readonly process: CliProcess;
  readonly origin: LeaseOrigin;
  /** Time for which the process has waited for the results of its calls, milliseconds; null if it has made none. */
  readonly heldMs: number | null;
  /** Features of the program beside text. */
  readonly extras: Capabilities;
  /** Runs one turn, see `CliProcess.turn`. A live session does not get the history again. */
  turn(turn: Turn, sink: TurnSink, signal: AbortSignal): Promise<TurnEnd>;
  /** Returns the resources used since the previous call; null if they are not measured. */
  usage(): CgroupUsage | null;
  /**
   * Keeps the process for this conversation if it can take another turn. With null, renews the process for its client.
   * If neither is possible, ends it. Resolves when the processes that the job has used up or displaced have ended.
   */
  release(conversation: ConversationState | null): Promise<void>;
}

export interface PoolSettings extends SessionSettings {
  readonly limits: CliLimits;
  /** Whether processes are renewed. */
  readonly mayRenew: boolean;
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
  /** Whether the host has enough memory for processes that nobody needs yet. */
  readonly hasMemory: () => boolean;
  /** Called when a process that serves jobs changes its state. */
  readonly onChange: () => void;
}

/** Process that was claimed for the next turn of its conversation. */
type LiveProcess = Pick<CliLease, 'process' | 'heldMs'> & Pick<ConversationState, 'callIds'>;

/** Messages of a turn that a live or rewound process already has, so that they are not sent to it again. */
interface KnownMessages extends Omit<LiveProcess, 'process'> {
  /** Number of messages that a rewound process has kept. */
  readonly keptCount?: number;
}

/**
 * Owns all processes of one model CLI. A process serves one job or one conversation at a time, and never a second
 * client.
 */
export class ProcessPool {
  readonly #settings: PoolSettings;
  readonly #parts: PoolParts;
  /** All processes, each with the key of its launch; null if it only answers a question about the program. */
  readonly #all = new Map<CliProcess, LaunchKey | null>();
  readonly #endingSessions = new Set<CliProcess>();
  readonly #pauses: StartPauses;
  readonly #renewals: RenewalTrust;
  readonly #rewinds: RenewalTrust;
  /** Number of calls of `forgetTenants`. */
  #generation = 0;
  readonly #underWay: RenewalsUnderWay;
  /** Whether each process ends with its job, because its login is no longer used. */
  keepsNoSessions = false;

  constructor(settings: PoolSettings, parts: PoolParts) {
    this.#settings = settings;
    this.#parts = parts;
    const onPause = parts.observer.renewalsPaused;
    this.#renewals = new RenewalTrust('renewal', parts.clock, onPause);
    this.#rewinds = new RenewalTrust('rewinding', parts.clock, onPause);
    this.#underWay = new RenewalsUnderWay(parts.clock);
    this.#pauses = new StartPauses(parts.clock, () => this.#all.keys());
  }

  /** Processes that serve jobs or may serve one later, each with the key of its launch. */
  get processes(): readonly (readonly [process: CliProcess, key: LaunchKey])[] {
    return [...this.#all].flatMap(([process, key]) => (key === null ? [] : [[process, key] as const]));
  }

  /** Processes that wait for a turn of their conversation, for the results of its calls, or for any question. */
  get sessions(): readonly Session[] {
    return sessionsOf(this.#all.keys(), this.#parts.awaited);
  }

  /** Processes that were renewed for their client, or will be after their job. */
  get reusable(): readonly { readonly key: LaunchKey; readonly tenant: Tenant }[] {
    return this.processes.flatMap(([{ state, tenant }, key]) => {
      const isBusy = state.name === 'busy' && tenant?.isQuestion === true;
      return tenant !== null && (isBusy || isRenewed({ state })) ? [{ key, tenant }] : [];
    });
  }

  get #liveSessions(): readonly LiveSession[] {
    return this.sessions.filter((session): session is LiveSession => session.conversation !== null);
  }

  /**
   * Returns a process for one job: the live session of the conversation, a rewound or a renewed process of the client, a
   * standby process, the process of an earlier question of the client, or a new one. Rejects with `spawn_error`, or with
   * the signal's reason. `conversation` is null if the job has no conversation, or one that does not exist yet. `owner`:
   * null if the process must serve no other question.
   */
  async acquire(
    program: KnownProgram,
    launch: LaunchOptions,
    conversation: ConversationState | null,
    signal: AbortSignal,
    owner: Tenant | null = null,
  ): Promise<CliLease> {
    const { observer, clock, history } = this.#parts;
    const key = launchKeyOf(program, launch);
    const { extras, keptParts } = program.programVersion;
    const mayRenew = this.#settings.mayRenew && keptParts !== undefined && owner !== null;
    const tenant = mayRenew && !this.#renewals.isPausedFor(owner.client) ? owner : null;
    const generation = this.#generation;
    const tenantNow = () => (generation === this.#generation ? tenant : null); // a key may change while this waits
    const live = conversation === null ? null : this.#claimLive(key, conversation, tenant);
    const rewound =
      live !== null || conversation === null || tenant === null
        ? null
        : await this.#claimRewound(key, conversation, tenant, keptParts, signal);
    if (conversation !== null) observer.liveSessionTaken(live === null && rewound === null ? 'replay' : 'hit');
    if (live !== null) return this.#lease(live.process, 'live', extras, live);
    if (rewound !== null) return this.#lease(rewound.process, 'rewound', extras, rewound);
    history.recordUse(key, launch, clock.monotonicMs(), tenant?.client ?? null);
    const renewed = tenant === null ? null : await this.#claimRenewed(key, tenant, keptParts, signal);
    if (renewed !== null) return this.#lease(renewed, 'renewed', extras);
    const waiting = this.#claimStandby(key, tenantNow());
    observer.standbyTaken(waiting === null ? 'miss' : 'hit');
    if (waiting !== null) return this.#lease(waiting, 'standby', extras);
    const now = tenantNow();
    const left = conversation === null && now !== null ? await this.#renewLeft(key, now, keptParts, signal) : null;
    if (left !== null) return this.#lease(left, 'renewed', extras);
    const started = await this.#start(program, key, launch, 'busy', signal, tenantNow());
    return this.#lease(started, 'new', extras);
  }

  /** Starts a standby process for this launch. Rejects with `spawn_error`. */
  async startAhead(program: KnownProgram, launch: LaunchOptions): Promise<CliProcess> {
    return this.#start(program, launchKeyOf(program, launch), launch, 'standby');
  }

  /** Runs the program briefly to learn about it. Rejects with `spawn_error`. */
  async consult(...asked: Parameters<ConsultProgram>): Promise<Consultation> {
    const [path, args, input = '', isEnough, file, trialEnv] = asked;
    const { launcher, clock, callbacks } = this.#parts;
    const programVersion = new ConsultedProgram(isEnough);
    using trial = trialEnv && callbacks && (await openTrial(callbacks, programVersion, trialEnv));
    const process = this.#add(programVersion, null, 'busy');
    const plan = (place: string) => consultPlan(args, file, place);
    await process.startProgram(launcher.launch({ program: path, plan, ...(trial && { env: trial.env }) }));
    return await consultation(process, programVersion, input, clock);
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
    await process.startProgram(this.#parts.launcher.launch({ program, plan, renewalLock: lock }));
    await untilExit(process, isDone);
  }

  /** Whether a process waits for the next turn of this conversation. */
  hasSessionOf(conversationId: string): boolean {
    return this.#liveSessions.some(({ conversation }) => conversation.id === conversationId);
  }

  /** Returns whether a living process waits for exactly this turn. */
  hasSessionFor(state: ConversationState): boolean {
    const session = this.#liveSessions.find(({ conversation }) => conversation.id === state.id);
    return session !== undefined && canContinue(session.conversation, state) && session.process.isAlive;
  }

  /** Ends the process of a conversation that was deleted or replaced. */
  endSessionOf(conversationId: string): void {
    for (const session of this.sessions) if (session.conversation?.id === conversationId) this.#endSession(session);
  }

  /** Ends the idle processes of these clients. */
  endSessionsOf(isAmong: (client: ClientText) => boolean): void {
    for (const session of this.sessions) if (isAmong(session.client)) this.#endSession(session);
  }

  /** Ends all renewed processes, and renews none that serves a job now, because a key has changed. */
  forgetTenants(): void {
    this.#generation++;
    for (const [process] of this.#all) process.forbidRenewal();
    this.endRenewed();
  }

  /** Ends all renewed processes, because other programs need their memory. */
  endRenewed(): void {
    for (const session of this.sessions) if (session.isRenewed) this.#endSession(session);
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
  async closePool(): Promise<void> {
    this.#parts.launcher.stop();
    await Promise.all([...this.#all.keys()].map((process) => process.end('shutting_down')));
  }

  /** Renewals and rewindings that fail or are paused. */
  get renewalFaults(): readonly RenewalFault[] {
    const isShort = this.#settings.mayRenew && !this.#parts.hasMemory();
    return [isShort ? shortOfMemory : null, this.#renewals.fault, this.#rewinds.fault].filter(
      (fault) => fault !== null,
    );
  }

  /** Counts the processes, without consultations, by state. */
  counts(): StateCounts {
    return countStates(this.processes.map(([process]) => process));
  }

  async #release(process: CliProcess, origin: LeaseOrigin, conversation: ConversationState | null): Promise<void> {
    if (origin === 'new' && process.startupMs !== null) this.#parts.observer.startedUp(process.startupMs);
    if (conversation !== null) this.endSessionOf(conversation.id);
    if (!(await this.#keep(process, conversation))) return process.end('done');
    this.endSpentSessions();
    // If the slot became free before these have ended, programs that end slowly would accumulate turn by turn.
    await Promise.all([...this.#endingSessions].map(({ ended: gone }) => gone));
  }

  /** Keeps the process for its conversation or its client. Returns whether this was possible. */
  async #keep(process: CliProcess, conversation: ConversationState | null): Promise<boolean> {
    if (conversation !== null) return this.#mayStay && process.keepFor(conversation);
    if (process.tenant === null || !this.#parts.hasMemory()) return false;
    return this.#underWay.addRenewal(process, this.#renew(process));
  }

  get #mayStay(): boolean {
    return this.#settings.maxSessions > 0 && !this.keepsNoSessions;
  }

  /** Renews the process for its client. Returns false if the process must be ended. */
  async #renew(process: CliProcess): Promise<boolean> {
    const { tenant } = process;
    if (tenant === null || !this.#mayStay) return false;
    const renewal = await process.renew();
    if (renewal !== 'ended') this.#renewals.record(tenant.client, renewal);
    // A change of the keys may have removed the client in the meantime.
    return renewal === 'proven' && process.tenant !== null && this.#mayStay && process.keepFor(null);
  }

  /**
   * Renews and claims the process of an earlier question of the client that no request has continued, the oldest first.
   * Returns null if there is none, or if the program does not prove that its context is empty.
   */
  async #renewLeft(
    key: LaunchKey,
    tenant: Tenant,
    keptParts: ProgramVersion['keptParts'],
    signal: AbortSignal,
  ): Promise<CliProcess | null> {
    const nowMs = this.#parts.clock.monotonicMs();
    const fits = (each: Session) => isLeft(each, nowMs) && this.#mayServe(each.process, key, tenant, keptParts);
    const session = this.sessions.toSorted((a, b) => a.sinceMs - b.sinceMs).find(fits);
    const process = session === undefined ? null : claimIfAlive(session.process, tenant);
    if (process === null) return null;
    if (!(await this.#renew(process))) {
      this.#endSession({ process });
      return null;
    }
    signal.throwIfAborted();
    // Another question of the client may have claimed the process at once.
    return isRenewed(process) ? claimIfAlive(process, tenant) : null;
  }

  /** Whether a process has the launch, the client and the parts of a question. */
  #mayServe(process: CliProcess, key: LaunchKey, tenant: Tenant, keptParts: ProgramVersion['keptParts']): boolean {
    return this.#all.get(process) === key && process.tenant !== null && mayServe(process.tenant, tenant, keptParts);
  }

  /**
   * Claims the process that was renewed last, because its memory is the least likely to be swapped out. Without one, waits
   * briefly for a renewal under way.
   */
  async #claimRenewed(
    key: LaunchKey,
    tenant: Tenant,
    keptParts: ProgramVersion['keptParts'],
    signal: AbortSignal,
  ): Promise<CliProcess | null> {
    const fits = (process: CliProcess) => this.#mayServe(process, key, tenant, keptParts);
    const claim = () => {
      const newestFirst = this.sessions.toSorted((a, b) => b.sinceMs - a.sinceMs);
      const fitting = newestFirst.filter(({ process, isRenewed }) => isRenewed && fits(process));
      return firstOf(fitting, ({ process }) => claimIfAlive(process, tenant));
    };
    const claimed = claim();
    if (claimed !== null) return claimed;
    await this.#underWay.wait(fits);
    signal.throwIfAborted();
    return claim();
  }

  #claimLive(key: LaunchKey, state: ConversationState, tenant: Tenant | null): LiveProcess | null {
    const session = this.#liveSessions.find(({ conversation }) => conversation.id === state.id);
    if (session === undefined) return null;
    if (canContinue(session.conversation, state) && this.#all.get(session.process) === key) {
      const claimed = claimIfAlive(session.process, tenant);
      const { clock, observer } = this.#parts;
      if (claimed === null) return null;
      const heldMs = session.isWaiting ? clock.monotonicMs() - session.sinceMs : null;
      if (heldMs !== null) observer.toolsHeld(heldMs);
      return { process: claimed, heldMs, callIds: session.conversation.callIds };
    }
    this.#endSession(session);
    return null;
  }

  /**
   * Claims a process of the client whose conversation begins like this one, and rewinds it to the last common message.
   * Returns null if no process has this beginning, or if the program does not prove which messages are left.
   */
  async #claimRewound(
    key: LaunchKey,
    state: ConversationState,
    tenant: Tenant,
    keptParts: ProgramVersion['keptParts'],
    signal: AbortSignal,
  ): Promise<(KnownMessages & { readonly process: CliProcess }) | null> {
    const history = state.beginnings === undefined ? [] : (state.history?.() ?? []);
    if (history.length !== state.messageCount || this.#rewinds.isPausedFor(tenant.client)) return null;
    const mayBelong = ({ process }: Session) => this.#mayServe(process, key, tenant, keptParts);
    const found = sessionToRewind(this.#liveSessions.filter(mayBelong), state);
    const process = found === null ? null : claimIfAlive(found.session.process, tenant);
    if (found === null || process === null) return null;
    const { keptCount, session } = found;
    const rewinding = await process.rewind(history.slice(0, keptCount));
    if (rewinding === 'unchanged' && process.keepFor(session.conversation)) return null;
    if (rewinding !== 'unchanged') this.#rewinds.record(tenant.client, rewinding);
    if (rewinding === 'proven' && !signal.aborted) return { process, keptCount, heldMs: null };
    this.#endSession({ process });
    signal.throwIfAborted();
    return null;
  }

  #claimStandby(key: LaunchKey, tenant: Tenant | null): CliProcess | null {
    const waiting = [...this.#all].filter(([process, other]) => other === key && process.state.name === 'standby');
    const claimed = firstOf(waiting, ([process]) => claimIfAlive(process, tenant));
    if (claimed !== null) this.#parts.history.recordSuccess(key);
    return claimed;
  }

  async #start(
    { path, leading, programVersion }: KnownProgram,
    key: LaunchKey,
    launch: LaunchOptions,
    next: 'standby' | 'busy',
    signal?: AbortSignal,
    tenant: Tenant | null = null,
  ): Promise<CliProcess> {
    const plan = (systemPath: string) => {
      const { args, files } = programVersion.plan(launch, systemPath);
      return { args: [...leading, ...args], files };
    };
    const process = this.#add(programVersion, key, next);
    await process.startProgram(this.#parts.launcher.launch({ program: path, plan }, signal), tenant);
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
    this.#pauses.update();
    // A readiness check runs the program, too. The end of that process must not cause the next check.
    if (key !== null) onChange();
  }

  #endSession({ process }: Pick<Session, 'process'>): void {
    this.#endingSessions.add(process);
    void process.end('retired').then(() => this.#endingSessions.delete(process));
  }

  #lease(
    process: CliProcess,
    origin: LeaseOrigin,
    extras: Capabilities,
    { heldMs, callIds, keptCount = 0 }: KnownMessages = { heldMs: null },
  ): CliLease {
    const adapted = (turn: Turn) => {
      if (origin === 'live') return continued(turn, callIds);
      return origin === 'rewound' ? partlyContinued(turn, keptCount) : replayable(turn);
    };
    this.#parts.observer.processTaken(origin === 'new' ? 'fresh' : origin);
    return {
      process,
      origin,
      heldMs,
      extras,
      turn: (turn, sink, signal) => process.turn(adapted(turn), sink, signal),
      usage: () => process.takeUsage(),
      release: (conversation) => this.#release(process, origin, conversation),
    };
  }
}

/** Returns the first result that is not null, and makes no further ones. */
function firstOf<T, R>(items: readonly T[], make: (item: T) => R | null): R | null {
  for (const item of items) {
    const made = make(item);
    if (made !== null) return made;
  }
  return null;
}

function claimIfAlive(process: CliProcess, tenant: Tenant | null): CliProcess | null {
  if (!process.isAlive) {
    void process.retire();
    return null;
  }
  process.claim(tenant);
  return process;
}
