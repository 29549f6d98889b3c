import type { Clock } from '../../shared/clock.js';
import type { CliProcess } from './cli-process.js';
import type { LaunchKey } from './standby.js';

export interface LiveSettings {
  readonly maxSessions: number;
  /** Time without a turn after which a session ends, milliseconds. */
  readonly idleMs: number;
}

/** A conversation as a turn finds it. */
export interface ConversationState {
  readonly id: string;
  readonly messageCount: number;
}

interface Session {
  readonly process: CliProcess;
  readonly key: LaunchKey;
  readonly messageCount: number;
  readonly sinceMs: number;
}

/** Owns the processes that stay with their conversations between turns; never used for anything else. */
export class LiveSessions {
  readonly #settings: LiveSettings;
  readonly #clock: Clock;
  /** In order of last use. */
  readonly #sessions = new Map<string, Session>();
  /** Processes whose end is listened for already: they come back after every turn. */
  readonly #watched = new WeakSet<CliProcess>();
  /** Of the sessions that have ended, and whose processes are not gone yet. */
  readonly #ends = new Set<Promise<void>>();

  constructor(settings: LiveSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  get isOff(): boolean {
    return this.#settings.maxSessions === 0;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** The conversation's own process, if it stands exactly at the last turn; any other is ended. It belongs to the caller. */
  take({ id, messageCount }: ConversationState, key: LaunchKey): CliProcess | null {
    const session = this.#sessions.get(id);
    if (session === undefined) return null;
    const { process } = session;
    this.#sessions.delete(id);
    if (process.isWaiting && session.key === key && session.messageCount === messageCount) return process;
    this.#end(process);
    return null;
  }

  /**
   * At once; resolves when every session that has ended by then is gone. A slot is freed only after that, else programs
   * that are slow to end would become more with every turn.
   */
  async keep({ id, messageCount }: ConversationState, key: LaunchKey, process: CliProcess): Promise<void> {
    this.drop(id);
    this.#sessions.set(id, { process, key, messageCount, sinceMs: this.#clock.monotonicMs() });
    this.#watch(id, process);
    if (this.#sessions.size > this.#settings.maxSessions) this.#dropOldest();
    await Promise.all(this.#ends);
  }

  /** The conversation is gone, or its process must not be used again. */
  drop(id: string): void {
    const session = this.#sessions.get(id);
    this.#sessions.delete(id);
    if (session !== undefined) this.#end(session.process);
  }

  /** Ends what has been idle for too long. */
  tend(): void {
    const limit = this.#clock.monotonicMs() - this.#settings.idleMs;
    for (const [id, { sinceMs }] of this.#sessions) if (sinceMs <= limit) this.drop(id);
  }

  async flush(): Promise<void> {
    const processes = [...this.#sessions.values()].map(({ process }) => process);
    this.#sessions.clear();
    await Promise.all(processes.map((process) => process.retire()));
  }

  /** With the grace of a job, because a slot may wait for it. */
  #end(process: CliProcess): void {
    const end = process.end('retired').finally(() => this.#ends.delete(end));
    this.#ends.add(end);
  }

  #watch(id: string, process: CliProcess): void {
    if (this.#watched.has(process)) return;
    this.#watched.add(process);
    void process.exited.then(() => this.#sessions.get(id)?.process === process && this.drop(id));
  }

  #dropOldest(): void {
    const [oldest] = this.#sessions.keys();
    if (oldest !== undefined) this.drop(oldest);
  }
}
