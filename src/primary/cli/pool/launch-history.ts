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
    if (record !== undefined) record.failures = 0;
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
