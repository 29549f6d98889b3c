import type { Clock, StopTimer } from '../../../shared/clock.js';
import { idleTicks } from '../../../shared/process/proc.js';
import type { LaunchOptions } from '../contract/adapter.js';
import type { CliProcess, ConversationState } from '../process/cli-process.js';
import { type KnownProgram, type LaunchKey, plannedKeyOf } from '../process/program.js';
import type { Tenant } from '../process/renewal.js';
import { mayServe } from './fitting.js';
import type { ProcessPool } from './process-pool.js';
import {
  type LaunchHistory,
  type LaunchRecord,
  planStandby,
  type StandbyProcess,
  unusedLaunch,
} from './standby-policy.js';

/** Job that waits for a slot. */
export interface WaitingJob {
  readonly launch: LaunchOptions;
  readonly conversation: ConversationState | null;
  /** Client for whose next question a process may be renewed; null if none may. */
  readonly tenant: Tenant | null;
}

export interface StandbyParts {
  readonly pool: ProcessPool;
  readonly history: LaunchHistory;
  readonly load: Pick<HostLoad, 'hasMemory' | 'idleProcessors'>;
  readonly clock: Clock;
  readonly findProgram: () => Promise<KnownProgram>;
  /** Jobs that are next to get a slot. */
  readonly waitingJobs: () => readonly WaitingJob[];
  /** Whether the service accepts jobs. */
  readonly isReady: () => boolean;
  /** Whether the login is in use; if not, no process waits for jobs. */
  readonly isInUse: () => boolean;
}

/** Delay that merges simultaneous changes into one check, milliseconds. */
const settleMs = 20;
/** Interval of checks while an obstacle persists whose end triggers no event, milliseconds. */
const retryMs = 1000;
/** Longest interval while the program cannot be used: a check may have to start it. */
const maxRetryMs = 60_000;
/** A program without output for this long has finished its start and waits for the model. */
const maxStartMs = 1000;
const never = Number.POSITIVE_INFINITY;

/**
 * Starts processes in advance and ends unneeded ones, by the standby and session policies. The keeper sleeps while
 * nothing changes.
 */
export class StandbyKeeper {
  readonly #perLaunch: number;
  readonly #parts: StandbyParts;
  #state: 'off' | 'waiting' | 'checking' = 'off';
  /** When to check next, monotonic. */
  #nextMs = never;
  /** Consecutive checks in which the program could not be used. */
  #failures = 0;
  #stopTimer: StopTimer = () => {};

  /** `perLaunch`: number of standby processes for each launch in use; 0 disables them. */
  constructor(perLaunch: number, parts: StandbyParts) {
    this.#perLaunch = perLaunch;
    this.#parts = parts;
  }

  startStandby(): void {
    this.#state = 'waiting';
    this.update();
  }

  stopStandby(): void {
    this.#state = 'off';
    this.#stopTimer();
  }

  /** Schedules a check, because state has changed on which the policies depend. */
  update(): void {
    this.#checkAt(this.#parts.clock.monotonicMs() + settleMs);
  }

  #checkAt(atMs: number): void {
    if (this.#state === 'off' || atMs >= this.#nextMs) return;
    this.#nextMs = atMs;
    if (this.#state === 'checking') return; // the running check plans the next one
    this.#stopTimer();
    const waitMs = Math.max(0, atMs - this.#parts.clock.monotonicMs()); // the previous check may have taken longer
    this.#stopTimer = this.#parts.clock.after(waitMs, () => void this.#check());
  }

  async #check(): Promise<void> {
    this.#state = 'checking';
    this.#nextMs = never;
    if (!this.#parts.load.hasMemory) this.#parts.pool.endRenewed();
    const wishedMs = Math.min(this.#parts.pool.endSpentSessions(), await this.#tendStandby());
    if (this.#state !== 'checking') return;
    this.#state = 'waiting';
    const atMs = Math.min(wishedMs, this.#nextMs);
    this.#nextMs = never;
    this.#checkAt(atMs);
  }

  /** Returns when to check again. */
  async #tendStandby(): Promise<number> {
    const { pool, history, load, clock, findProgram, isReady, isInUse } = this.#parts;
    const perLaunch = isInUse() ? this.#perLaunch : 0;
    if (this.#perLaunch === 0 || (perLaunch === 0 && pool.counts().standby === 0)) return never;
    const program = await findProgram().catch(() => null);
    const nowMs = clock.monotonicMs();
    this.#failures = program === null ? this.#failures + 1 : 0;
    if (program === null) return nowMs + Math.min(retryMs * 2 ** (this.#failures - 1), maxRetryMs);
    if (!isReady() || !load.hasMemory) return nowMs + retryMs;
    history.refresh((launch) => plannedKeyOf(program, launch), nowMs);
    const demand = this.#demand(program);
    const { start, retire, nextMs } = planStandby({
      nowMs,
      perLaunch,
      processes: pool.processes.flatMap(([process, key]) => standbyOf(process, key)),
      launches: withDemanded(history.records, demand),
      isDefault: (record) => history.isDefault(record),
      renewedFor: (key, client) =>
        pool.reusable.filter((each) => each.key === key && each.tenant.client === client).length,
      demand: demand.map(({ key }) => key),
      isJobStarting: pool.processes.some(([process]) => isStartingUp(process, nowMs)),
      idleProcessors: demand.length > 0 ? await load.idleProcessors() : null,
    });
    for (const { process } of retire) void process.retire();
    if (start !== null) void this.#start(program, start);
    return nextMs;
  }

  /**
   * Returns the launches of waiting jobs that need a process, because their conversation has no live session, and their
   * client no renewed process.
   */
  #demand(program: KnownProgram): LaunchRecord[] {
    const { pool, waitingJobs } = this.#parts;
    const live = new Set(pool.sessions.map(({ conversation }) => conversation?.id));
    const left = [...pool.reusable];
    return waitingJobs().flatMap(({ launch, conversation, tenant }) => {
      const key = conversation !== null && live.has(conversation.id) ? null : plannedKeyOf(program, launch);
      if (key === null) return [];
      const { keptParts } = program.programVersion;
      const found = left.findIndex((each) => each.key === key && mayServe(each.tenant, tenant, keptParts));
      if (found >= 0) left.splice(found, 1);
      return found >= 0 ? [] : [unusedLaunch(key, launch)];
    });
  }

  async #start(program: KnownProgram, { key, launch }: LaunchRecord): Promise<void> {
    const { pool, history, clock } = this.#parts;
    try {
      await pool.startAhead(program, launch);
    } catch {
      history.recordFailure(key, clock.monotonicMs()); // the next job or check reports why
    }
  }
}

/** Adds the launches of waiting jobs, because a job may wait with a launch that was never used before. */
function withDemanded(known: readonly LaunchRecord[], demand: readonly LaunchRecord[]): LaunchRecord[] {
  return [...new Map([...demand, ...known].map((record) => [record.key, record])).values()];
}

interface StandbyMember extends StandbyProcess {
  readonly process: CliProcess;
}

function standbyOf(process: CliProcess, key: LaunchKey): StandbyMember[] {
  const { state, startedMs } = process;
  const isStarting = state.name === 'starting' && state.next === 'standby';
  return isStarting || state.name === 'standby' ? [{ process, key, startedMs, isStarting }] : [];
}

/** Whether a job waits for the start of its program, which another start would slow down. */
function isStartingUp({ state, startupMs, startedMs }: CliProcess, nowMs: number): boolean {
  return state.name === 'busy' && startupMs === null && nowMs - startedMs < maxStartMs;
}

/**
 * Shortest and longest interval of a sample. The kernel counts idle time in ticks of 10 ms, so a shorter one is too
 * coarse; a longer one is outdated.
 */
const sampleAgeMs = { min: 50, max: 500 };
const tickMs = 10;
/** A model CLI uses up to 185 MB (measured on claude). With less free memory, none is started in advance. */
const minFreeBytes = 512 * 1024 * 1024;

/** Measures the idle processors and the free memory of the host. */
export class HostLoad {
  readonly #clock: Clock;
  readonly #freeMemory: () => number;
  #sample: { readonly atMs: number; readonly ticks: number } | null = null;

  /** `freeMemory` returns the bytes that are available without swapping. */
  constructor(clock: Clock, freeMemory: () => number) {
    this.#clock = clock;
    this.#freeMemory = freeMemory;
  }

  get hasMemory(): boolean {
    return this.#freeMemory() > minFreeBytes;
  }

  /** Returns the average number of idle processors since the previous call; null if it is unknown. */
  async idleProcessors(): Promise<number | null> {
    const before = this.#sample;
    const atMs = this.#clock.monotonicMs();
    const ageMs = atMs - (before?.atMs ?? Number.NEGATIVE_INFINITY);
    if (ageMs < sampleAgeMs.min) return null;
    const ticks = await idleTicks();
    this.#sample = ticks === null ? null : { atMs, ticks };
    return ticks === null || before === null || ageMs > sampleAgeMs.max
      ? null
      : ((ticks - before.ticks) * tickMs) / ageMs;
  }
}
