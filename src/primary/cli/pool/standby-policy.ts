import type { ClientText } from '../../../shared/client.js';
import type { LaunchOptions } from '../contract/adapter.js';
import type { LaunchKey } from '../process/program.js';

/** Use and failures of one launch. */
export interface LaunchRecord {
  readonly key: LaunchKey;
  readonly launch: LaunchOptions;
  uses: number;
  usedMs: number;
  /** Client of the last use; null if no process may be renewed for it. */
  client: ClientText | null;
  /** When the last use by another client than the one before was, or by a client without renewed processes, monotonic. */
  sharedMs: number;
  /** Standby processes that died or could not be started since a job last took one. */
  failures: number;
  /** Time before which no process is started in advance, monotonic. */
  notBeforeMs: number;
}

export function unusedLaunch(key: LaunchKey, launch: LaunchOptions): LaunchRecord {
  const unused = { uses: 0, usedMs: 0, client: null, sharedMs: Number.NEGATIVE_INFINITY };
  return { key, launch, ...unused, failures: 0, notBeforeMs: 0 };
}

/** Number of launches to remember. Beyond it, the least recently used one is removed, but never the default launch. */
const maxLaunches = 4;
const maxBackoffMs = 60_000;
/** Head start of a job that has just taken a process, before another start may compete with it, milliseconds. */
const headStartMs = 150;

/** Records which launches jobs have used recently. */
export class LaunchHistory {
  readonly #defaultLaunch: LaunchOptions | null;
  /** Records in the order of their last use. */
  readonly #records = new Map<LaunchKey, LaunchRecord>();
  #defaultKey: LaunchKey | null = null;

  /** `defaultLaunch` is the launch of a request without options; null if a model must be named. */
  constructor(defaultLaunch: LaunchOptions | null) {
    this.#defaultLaunch = defaultLaunch;
  }

  get records(): readonly LaunchRecord[] {
    return [...this.#records.values()];
  }

  isDefault({ key }: LaunchRecord): boolean {
    return key === this.#defaultKey;
  }

  /** Removes launches whose key has changed with the program's file, and adds the default launch if it has a key. */
  refresh(keyOf: (launch: LaunchOptions) => LaunchKey | null, nowMs: number): void {
    for (const { key, launch } of this.records) if (keyOf(launch) !== key) this.#records.delete(key);
    if (this.#defaultLaunch === null) return;
    this.#defaultKey = keyOf(this.#defaultLaunch);
    if (this.#defaultKey !== null && !this.#records.has(this.#defaultKey))
      this.#add(this.#defaultKey, this.#defaultLaunch, nowMs);
  }

  /** Records that a job uses this launch. `client`: null if no process may be renewed for it. */
  recordUse(key: LaunchKey, launch: LaunchOptions, nowMs: number, client: ClientText | null = null): void {
    const record = this.#records.get(key) ?? this.#add(key, launch, nowMs);
    if (client === null || (record.uses > 0 && client !== record.client)) record.sharedMs = nowMs;
    record.client = client;
    record.uses++;
    record.usedMs = nowMs;
    record.notBeforeMs = Math.max(record.notBeforeMs, nowMs + headStartMs);
    this.#records.delete(key); // moves the record to the end, because the map is in order of last use
    this.#records.set(key, record);
  }

  /** Resets the failures, after a job has taken a standby process. */
  recordSuccess(key: LaunchKey): void {
    const record = this.#records.get(key);
    if (record) record.failures = 0;
  }

  /** Records that a standby process died or could not be started. The delay before the next start doubles each time. */
  recordFailure(key: LaunchKey, nowMs: number): void {
    const record = this.#records.get(key);
    if (record === undefined) return;
    record.notBeforeMs = nowMs + Math.min(1000 * 2 ** record.failures, maxBackoffMs);
    record.failures++;
  }

  #add(key: LaunchKey, launch: LaunchOptions, nowMs: number): LaunchRecord {
    const record = { ...unusedLaunch(key, launch), usedMs: nowMs };
    this.#records.set(key, record);
    const oldest = [...this.#records.keys()].find((other) => other !== this.#defaultKey);
    if (this.#records.size > maxLaunches && oldest !== undefined) this.#records.delete(oldest);
    return record;
  }
}

/** Process that was started in advance, as the policy sees it. */
export interface StandbyProcess {
  readonly key: LaunchKey;
  readonly startedMs: number;
  readonly isStarting: boolean;
}

export interface StandbySituation<P extends StandbyProcess> {
  readonly nowMs: number;
  /** Number of standby processes for each launch in use; 0 disables them. */
  readonly perLaunch: number;
  readonly processes: readonly P[];
  readonly launches: readonly LaunchRecord[];
  readonly isDefault: (record: LaunchRecord) => boolean;
  /** Returns the number of processes with this launch that were renewed for this client, or will be after their job. */
  readonly renewedFor: (key: LaunchKey, client: ClientText) => number;
  /** Launches of the jobs that are next to get a slot and need a new process. */
  readonly demand: readonly LaunchKey[];
  /** Whether a job waits for the start of its program, which another start would slow down. */
  readonly isJobStarting: boolean;
  /** Number of idle processors; null if it is unknown. */
  readonly idleProcessors: number | null;
}

export interface StandbyPlan<P extends StandbyProcess> {
  readonly start: LaunchRecord | null;
  readonly retire: readonly P[];
  /** When to check again if nothing changes, monotonic; infinite if no check is needed. */
  readonly nextMs: number;
}

/** Longest life of a standby process. The credential, or the target of a model alias, may become outdated. */
const maxAgeMs = 15 * 60_000;
/** Time without use after which a launch no longer needs a standby process. */
const coolsAfterMs = 10 * 60_000;
/** Uses after which a launch other than the default one gets a standby process. */
const minUses = 2;
/**
 * Time for which processes stay that were started for a queue and are now too many, as further jobs may follow soon.
 */
const surplusMs = 10_000;
/** Idle processors needed for a start, which keeps about one processor busy. */
const processorsPerStart = 0.8;
/** Interval between two checks, milliseconds: while a process is missing, and otherwise. */
const [sampleMs, ageCheckMs] = [100, 60_000];

/**
 * Plans which standby process to start next, one at a time, and which to end. While jobs wait, processes are started
 * for them if processors are idle, so that each job finds one ready when it gets its slot.
 */
export function planStandby<P extends StandbyProcess>(situation: StandbySituation<P>): StandbyPlan<P> {
  const { nowMs, perLaunch, launches } = situation;
  if (perLaunch === 0) return { start: null, retire: situation.processes, nextMs: Number.POSITIVE_INFINITY };
  const retire = situation.processes.filter((process) => isSpent(process, situation));
  const left = situation.processes.filter((process) => !retire.includes(process));
  const needy = launches.filter((record) => wantedOf(record, situation) > ofLaunch(left, record).length);
  const due = needy.filter(({ notBeforeMs }) => notBeforeMs <= nowMs);
  const isBlocked = left.some(({ isStarting }) => isStarting) || !isAffordable(situation);
  return { start: isBlocked ? null : (due[0] ?? null), retire, nextMs: nextCheck(situation, left, needy) };
}

/**
 * Whether a start is affordable. While jobs wait, idle processors decide; otherwise a start only waits for a job whose
 * program is starting.
 */
function isAffordable({ demand, isJobStarting, idleProcessors }: StandbySituation<StandbyProcess>): boolean {
  return demand.length > 0 ? (idleProcessors ?? 0) >= processorsPerStart : !isJobStarting;
}

function wantedOf(record: LaunchRecord, situation: StandbySituation<StandbyProcess>): number {
  const { nowMs, perLaunch, isDefault, demand } = situation;
  const isInUse = isDefault(record) || (record.uses >= minUses && nowMs - record.usedMs <= coolsAfterMs);
  const demanded = demand.filter((key) => key === record.key).length;
  return Math.max(isInUse ? perLaunch - renewedForOnly(record, situation) : 0, demanded);
}

/**
 * Returns the number of processes that were renewed for the only recent client of a launch. They replace standby
 * processes, so that a single client needs no more memory than without them.
 */
function renewedForOnly({ key, client, sharedMs }: LaunchRecord, situation: StandbySituation<StandbyProcess>): number {
  if (client === null || situation.nowMs - sharedMs <= coolsAfterMs) return 0;
  return Math.min(situation.perLaunch, situation.renewedFor(key, client));
}

/** Whether a standby process is too old, surplus, or started for an unknown launch. */
function isSpent(process: StandbyProcess, situation: StandbySituation<StandbyProcess>): boolean {
  const { nowMs, launches, processes } = situation;
  const ageMs = nowMs - process.startedMs;
  const record = launches.find(({ key }) => key === process.key);
  if (record === undefined || ageMs > maxAgeMs) return true;
  const younger = ofLaunch(processes, record).filter(({ startedMs }) => startedMs > process.startedMs);
  const wanted = wantedOf(record, situation);
  return wanted === 0 || (younger.length >= wanted && ageMs > surplusMs && nowMs - record.usedMs > surplusMs);
}

function ofLaunch<P extends StandbyProcess>(processes: readonly P[], { key }: LaunchRecord): readonly P[] {
  return processes.filter((process) => process.key === key);
}

function nextCheck(
  { nowMs, perLaunch }: StandbySituation<StandbyProcess>,
  left: readonly StandbyProcess[],
  needy: readonly LaunchRecord[],
): number {
  const missing = needy.map(({ notBeforeMs }) => Math.max(notBeforeMs, nowMs + sampleMs));
  const waiting = left.length === 0 ? [] : [nowMs + (left.length > perLaunch ? surplusMs : ageCheckMs)];
  return Math.min(Number.POSITIVE_INFINITY, ...missing, ...waiting);
}
