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

interface WarmLaunch {
  readonly launch: Launch;
  readonly isUsual: boolean;
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
const maxWarmLaunches = 4;
const maxBackoffMs = 60_000;
/** The job that took a process has this long to get going before a start competes with it (a claude takes 50 ms). */
const headStartMs = 150;

/** Owns the processes that were started in advance: each waits for one launch and has seen nothing yet. */
export class Standby {
  readonly #settings: StandbySettings;
  readonly #start: (launch: Launch) => Promise<CliProcess>;
  readonly #clock: Clock;
  readonly #warm = new Map<LaunchKey, WarmLaunch>();
  #isStarting = false;
  #isClosed = false;

  constructor(settings: StandbySettings, start: (launch: Launch) => Promise<CliProcess>, clock: Clock) {
    this.#settings = settings;
    this.#start = start;
    this.#clock = clock;
  }

  get size(): number {
    return [...this.#warm.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** A process that waits for this launch, or null. It belongs to the caller. */
  take(key: LaunchKey, launch: Launch): CliProcess | null {
    if (this.#settings.perLaunch === 0 || this.#isClosed) return null;
    const warm = this.#use(key, launch);
    for (let process = warm.waiting.shift(); process !== undefined; process = warm.waiting.shift()) {
      if (process.isWaiting) {
        warm.deaths = 0;
        warm.notBeforeMs = this.#clock.monotonicMs() + headStartMs;
        return process;
      }
    }
    return null;
  }

  /** Lets go of what is old, and starts one process where one is missing. Called from time to time while all is calm. */
  tend(keyOf: (launch: Launch) => LaunchKey): void {
    if (this.#settings.perLaunch === 0 || this.#isClosed) return;
    const { usual } = this.#settings;
    if (!this.#warm.has(keyOf(usual))) this.#add(keyOf(usual), usual);
    this.#coolOff(keyOf);
    const [needy] = [...this.#warm.values()].filter((warm) => this.#needsOne(warm));
    if (needy !== undefined && !this.#isStarting) void this.#startFor(needy);
  }

  /** Ends every waiting process: what they were started with is no longer right. */
  async flush(): Promise<void> {
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
    const { usual } = this.#settings;
    const isUsual = launch.model === usual.model && launch.system === usual.system;
    const usedMs = this.#clock.monotonicMs();
    const warm: WarmLaunch = { launch, isUsual, waiting: [], uses: 0, usedMs, deaths: 0, notBeforeMs: 0 };
    this.#warm.set(key, warm);
    return warm;
  }

  #needsOne({ isUsual, uses, waiting, notBeforeMs }: WarmLaunch): boolean {
    const isWorthIt = isUsual || uses >= minUses;
    return isWorthIt && waiting.length < this.#settings.perLaunch && this.#clock.monotonicMs() >= notBeforeMs;
  }

  /** Drops launches that are out of use, or whose key has changed because the program's file has; and old processes. */
  #coolOff(keyOf: (launch: Launch) => LaunchKey): void {
    const now = this.#clock.monotonicMs();
    const surplus = this.#warm.size - maxWarmLaunches;
    [...this.#warm].forEach(([key, warm], index) => {
      const isOutOfUse = !warm.isUsual && (now - warm.usedMs > coolsAfterMs || index < surplus);
      if (isOutOfUse || keyOf(warm.launch) !== key) {
        this.#warm.delete(key);
        for (const process of warm.waiting.splice(0)) void process.retire();
      }
      for (const process of warm.waiting.filter(({ startedMs }) => now - startedMs > maxAgeMs)) {
        this.#remove(warm, process);
        void process.retire();
      }
    });
  }

  async #startFor(warm: WarmLaunch): Promise<void> {
    this.#isStarting = true;
    try {
      const process = await this.#start(warm.launch);
      if (this.#isClosed) return void process.retire();
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
