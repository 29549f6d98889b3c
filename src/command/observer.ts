import { healthBody, historyBody } from '../shared/api/health.js';
import { versionBody } from '../shared/api/version.js';
import type { Clock } from '../shared/clock.js';
import type { Client } from './client.js';
import type { Snapshot } from './render/status.js';
import { changeBetween, type Totals, totalsOf } from './render/totals.js';

interface Look {
  readonly totals: Totals;
  readonly atMs: number;
  /** Another one: the service has been started anew, and counts from zero. */
  readonly startedAt: string;
}

/** Looks at one service again and again; each look knows what has changed since the one before. */
export class Observer {
  readonly #client: Client;
  readonly #clock: Clock;
  #before: Look | null = null;

  constructor(client: Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Throws a CommandFault, or the signal's reason. */
  async look(signal?: AbortSignal): Promise<Snapshot> {
    const [health, version, { history }, exposition] = await Promise.all([
      this.#client.look('/health', healthBody, signal),
      this.#client.look('/version', versionBody, signal),
      this.#client.look('/health/history', historyBody, signal),
      this.#client.text('/metrics', signal),
    ]);
    const totals = totalsOf(exposition);
    const change = this.#changeTo(totals, health.observability.started_at);
    const takenAt = this.#clock.now();
    return { url: this.#client.url, takenAt, health, version, checks: history, totals, change };
  }

  #changeTo(totals: Totals, startedAt: string): Snapshot['change'] {
    const atMs = this.#clock.monotonicMs();
    const before = this.#before;
    this.#before = { totals, atMs, startedAt };
    if (before === null) return null;
    const isSame = before.startedAt === startedAt;
    return changeBetween(isSame ? before.totals : null, totals, (atMs - before.atMs) / 1000);
  }
}
