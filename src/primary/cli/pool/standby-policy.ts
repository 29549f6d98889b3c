import type { LaunchOptions } from '../contract/adapter.js';
import type { LaunchKey } from '../process/program.js';

/** What is known of one launch. */
export interface LaunchRecord {
  readonly key: LaunchKey;
  readonly launch: LaunchOptions;
  uses: number;
  usedMs: number;
  /** Processes that died while they waited or could not be started, since one was last used. */
  failures: number;
  /** No process is started in advance before this moment. */
  notBeforeMs: number;
}

export function unusedLaunch(key: LaunchKey, launch: LaunchOptions): LaunchRecord {
  return { key, launch, uses: 0, usedMs: 0, failures: 0, notBeforeMs: 0 };
}

/** The least recently used beyond these is forgotten; never the usual one. */
const maxLaunches = 4;
const maxBackoffMs = 60_000;
/** The job that has taken a process has this long to get going before another start competes with it. */
const headStartMs = 150;

/** Owns what is known of the launches that jobs have asked for lately. */
export class LaunchHistory {
  readonly #usual: LaunchOptions | null;
  /** In order of last use. */
  readonly #records = new Map<LaunchKey, LaunchRecord>();
  #usualKey: LaunchKey | null = null;

  /** `usual` is the launch of a request that names nothing; null where a model must be named. */
  constructor(usual: LaunchOptions | null) {
    this.#usual = usual;
  }

  get records(): readonly LaunchRecord[] {
    return [...this.#records.values()];
  }

  isUsual({ key }: LaunchRecord): boolean {
    return key === this.#usualKey;
  }

  /** Forgets the launches whose key has changed because the program's file has; the usual one is always known, where it has a key. */
  refresh(keyOf: (launch: LaunchOptions) => LaunchKey | null, nowMs: number): void {
    for (const { key, launch } of this.records) if (keyOf(launch) !== key) this.#records.delete(key);
    if (this.#usual === null) return;
    this.#usualKey = keyOf(this.#usual);
    if (this.#usualKey !== null && !this.#records.has(this.#usualKey)) this.#add(this.#usualKey, this.#usual, nowMs);
  }

  /** A job asks for this launch. */
  use(key: LaunchKey, launch: LaunchOptions, nowMs: number): void {
    const record = this.#records.get(key) ?? this.#add(key, launch, nowMs);
    record.uses++;
    record.usedMs = nowMs;
    record.notBeforeMs = Math.max(record.notBeforeMs, nowMs + headStartMs);
    this.#records.delete(key); // to the end: the map is in order of last use
    this.#records.set(key, record);
  }

  /** A process that had waited was good. */
  succeeded(key: LaunchKey): void {
    const record = this.#records.get(key);
    if (record) record.failures = 0;
  }

  /** A process died while it waited, or could not be started: the next one is tried later each time. */
  failed(key: LaunchKey, nowMs: number): void {
    const record = this.#records.get(key);
    if (record === undefined) return;
    record.notBeforeMs = nowMs + Math.min(1000 * 2 ** record.failures, maxBackoffMs);
    record.failures++;
  }

  #add(key: LaunchKey, launch: LaunchOptions, nowMs: number): LaunchRecord {
    const record = { ...unusedLaunch(key, launch), usedMs: nowMs };
    this.#records.set(key, record);
    const oldest = [...this.#records.keys()].find((other) => other !== this.#usualKey);
    if (this.#records.size > maxLaunches && oldest !== undefined) this.#records.delete(oldest);
    return record;
  }
}

/** A process that was started in advance, as the policy sees it. */
export interface StandbyProcess {
  readonly key: LaunchKey;
  readonly startedMs: number;
  readonly isStarting: boolean;
}

export interface StandbySituation<P extends StandbyProcess> {
  readonly nowMs: number;
  /** Processes on standby for each launch in use; 0: none at all. */
  readonly perLaunch: number;
  readonly processes: readonly P[];
  readonly launches: readonly LaunchRecord[];
  readonly isUsual: (record: LaunchRecord) => boolean;
  /** Launches of the jobs that are next to get a slot and will need a new process. */
  readonly demand: readonly LaunchKey[];
  /** A job waits for its program to get going: another start would slow it down. */
  readonly isJobStarting: boolean;
  /** Processors that do nothing; null where that is not known (yet). */
  readonly idleProcessors: number | null;
}

export interface StandbyPlan<P extends StandbyProcess> {
  readonly start: LaunchRecord | null;
  readonly retire: readonly P[];
  /** When to check again if nothing else happens, monotonic; infinite if there is no need. */
  readonly nextMs: number;
}

/** An older process may hold what is out of date: a credential, or what a model's alias stands for. */
const maxAgeMs = 15 * 60_000;
/** A launch needs no process when it was not used for this long. */
const coolsAfterMs = 10 * 60_000;
/** Beside the usual launch, only one that is used again is worth a waiting process. */
const minUses = 2;
/** What was started for a queue that has gone stays for this long: the next jobs may come soon. */
const surplusMs = 10_000;
/** A start keeps about one processor busy. */
const processorsPerStart = 0.8;
/** Between two checks while a process is missing, and else. */
const [sampleMs, ageCheckMs] = [100, 60_000];

/**
 * What to start in advance, one process at a time, and which of the waiting ones to end. While jobs wait, processes are
 * started for them as far as processors are idle, so that a slot that becomes free finds one ready.
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

/** While jobs wait, idle processors decide; else only a job that has just begun is in the way. */
function isAffordable({ demand, isJobStarting, idleProcessors }: StandbySituation<StandbyProcess>): boolean {
  return demand.length > 0 ? (idleProcessors ?? 0) >= processorsPerStart : !isJobStarting;
}

function wantedOf(record: LaunchRecord, situation: StandbySituation<StandbyProcess>): number {
  const { nowMs, perLaunch, isUsual, demand } = situation;
  const isInUse = isUsual(record) || (record.uses >= minUses && nowMs - record.usedMs <= coolsAfterMs);
  const asked = demand.filter((key) => key === record.key).length;
  return Math.max(isInUse ? perLaunch : 0, asked);
}

/** Too old, for a launch that is no longer known, or more than is wanted. */
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
