import type { Clock } from '../../shared/clock.js';
import type { Launch } from './adapter.js';
import type { CliProcess } from './cli-process.js';

export interface StandbySettings {
  /** Processes kept waiting for each warm launch; 0: none at all. */
  readonly perLaunch: number;
  /** The launch that is warm from the start. */
  readonly usual: Launch;
}

/** A launch as the program sees it: equal keys stand for equal programs, arguments and files. */
export type LaunchKey = string;

type KeyOf = (launch: Launch) => LaunchKey;

interface WarmLaunch {
  readonly launch: Launch;
  readonly waiting: CliProcess[];
  uses: number;
  usedMs: number;
  /** Processes that died while they waited, since one was last used. */
  deaths: number;
  notBeforeMs: number;
}

/** A process that waited longer may hold what is out of date: a credential, a model's alias. */
const maxAgeMs = 15 * 60_000;
/** A launch that nobody has used for this long cools off. */
const coolsAfterMs = 10 * 60_000;
/** Beside the usual one, only launches that are used again are worth a waiting process. */
const minUses = 2;
/** The least recently used beyond these is forgotten; never the usual one. */
const maxWarmLaunches = 4;
const maxBackoffMs = 60_000;
/** The job that took a process has this long to get going before a start competes with it (a claude takes 50 ms). */
const headStartMs = 150;

/** Owns the processes that were started in advance: each waits for one launch and has seen nothing yet. */
export class Standby {
  readonly #settings: StandbySettings;
  readonly #start: (launch: Launch) => Promise<CliProcess>;
  readonly #clock: Clock;
  /** In order of last use. */
  readonly #warm = new Map<LaunchKey, WarmLaunch>();
  #usualKey: LaunchKey | null = null;
  #isStarting = false;
  #flushes = 0;
  #isClosed = false;

  constructor(settings: StandbySettings, start: (launch: Launch) => Promise<CliProcess>, clock: Clock) {
    this.#settings = settings;
    this.#start = start;
    this.#clock = clock;
  }

  get isOff(): boolean {
    return this.#settings.perLaunch === 0 || this.#isClosed;
  }

  get size(): number {
    return [...this.#warm.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** A process that waits for this launch, or null. It belongs to the caller. */
  take(key: LaunchKey, launch: Launch): CliProcess | null {
    if (this.isOff) return null;
    const warm = this.#use(key, launch);
    for (let process = warm.waiting.shift(); process !== undefined; process = warm.waiting.shift()) {
      if (process.isWaiting) {
        warm.deaths = 0;
        warm.notBeforeMs = this.#clock.monotonicMs() + headStartMs;
        return process;
      }
      void process.retire(); // it has just died
    }
    return null;
  }

  /** Lets go of what is old, out of use, or whose key has changed because the program's file has. */
  coolOff(keyOf: KeyOf): void {
    this.#usualKey = keyOf(this.#settings.usual);
    const now = this.#clock.monotonicMs();
    for (const [key, warm] of this.#warm) {
      const isOutOfUse = key !== this.#usualKey && now - warm.usedMs > coolsAfterMs;
      if (isOutOfUse || keyOf(warm.launch) !== key) this.#forget(key);
      for (const process of warm.waiting.filter(({ startedMs }) => now - startedMs > maxAgeMs)) {
        this.#remove(warm, process);
        void process.retire();
      }
    }
  }

  /** Starts one process where one is missing. Called from time to time while all is calm. */
  refill(keyOf: KeyOf): void {
    if (this.isOff || this.#isStarting) return;
    const { usual } = this.#settings;
    this.#usualKey = keyOf(usual);
    if (!this.#warm.has(this.#usualKey)) this.#add(this.#usualKey, usual);
    const needy = [...this.#warm].find(([key, warm]) => this.#needsOne(key, warm));
    if (needy !== undefined) void this.#startFor(...needy);
  }

  /** Ends every waiting process, and any on its way: what they were started with is no longer right. */
  async flush(): Promise<void> {
    this.#flushes++;
    const waiting = [...this.#warm.values()].flatMap((warm) => warm.waiting.splice(0));
    await Promise.all(waiting.map((process) => process.retire()));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
  }

  #use(key: LaunchKey, launch: Launch): WarmLaunch {
    const warm = this.#warm.get(key) ?? this.#add(key, launch);
    warm.uses++;
    warm.usedMs = this.#clock.monotonicMs();
    this.#warm.delete(key); // to the end: the map is in order of last use
    this.#warm.set(key, warm);
    return warm;
  }

  #add(key: LaunchKey, launch: Launch): WarmLaunch {
    const usedMs = this.#clock.monotonicMs();
    const warm: WarmLaunch = { launch, waiting: [], uses: 0, usedMs, deaths: 0, notBeforeMs: 0 };
    this.#warm.set(key, warm);
    const oldest = [...this.#warm.keys()].find((other) => other !== this.#usualKey);
    if (this.#warm.size > maxWarmLaunches && oldest !== undefined) this.#forget(oldest);
    return warm;
  }

  #forget(key: LaunchKey): void {
    const waiting = this.#warm.get(key)?.waiting.splice(0) ?? [];
    this.#warm.delete(key);
    for (const process of waiting) void process.retire();
  }

  #needsOne(key: LaunchKey, { uses, waiting, notBeforeMs }: WarmLaunch): boolean {
    const isWorthIt = key === this.#usualKey || uses >= minUses;
    return isWorthIt && waiting.length < this.#settings.perLaunch && this.#clock.monotonicMs() >= notBeforeMs;
  }

  async #startFor(key: LaunchKey, warm: WarmLaunch): Promise<void> {
    const flushes = this.#flushes;
    this.#isStarting = true;
    try {
      const process = await this.#start(warm.launch);
      const isWanted = flushes === this.#flushes && this.#warm.get(key) === warm;
      if (!isWanted) return void process.retire();
      warm.waiting.push(process);
      void process.exited.then(() => this.#died(warm, process));
    } catch {
      this.#backOff(warm); // why it can't be started, the next job or readiness check will tell
    } finally {
      this.#isStarting = false;
    }
  }

  #died(warm: WarmLaunch, process: CliProcess): void {
    if (!this.#remove(warm, process)) return; // it was taken, or retired
    this.#backOff(warm);
    void process.retire();
  }

  #backOff(warm: WarmLaunch): void {
    warm.notBeforeMs = this.#clock.monotonicMs() + Math.min(1000 * 2 ** warm.deaths, maxBackoffMs);
    warm.deaths++;
  }

  #remove(warm: WarmLaunch, process: CliProcess): boolean {
    const index = warm.waiting.indexOf(process);
    if (index >= 0) warm.waiting.splice(index, 1);
    return index >= 0;
  }
}
