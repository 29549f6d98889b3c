import { type HealthBody, healthBody, historyBody, type ReadinessBody } from '../../shared/api/health.js';
import { setupReport } from '../../shared/api/setup.js';
import { statusBody } from '../../shared/api/status.js';
import { type VersionBody, versionBody } from '../../shared/api/version.js';
import type { Clock } from '../../shared/clock.js';
import type { Client } from './client.js';
import { ServiceError } from './errors.js';
import { type HourTotals, hourTotals, parseTotals, type Totals, type TotalsChange, totalsChange } from './totals.js';

const statusOfHour = statusBody.pick({ last_hour: true });

/** The state of a service at one moment. */
export interface ServiceSnapshot {
  readonly url: string;
  /** Milliseconds since the epoch. */
  readonly takenAt: number;
  readonly version: VersionBody;
  /** The words that start the model CLI; null where the service does not tell. */
  readonly command: readonly string[] | null;
  readonly health: HealthBody;
  /** Readiness checks, oldest first. */
  readonly checks: readonly ReadinessBody[];
  /** Null where this client may not read the metrics. */
  readonly totals: Totals | null;
  /** Read where there are no totals, if this client may read the status. */
  readonly lastHour: HourTotals | null;
  /** Since the previous snapshot; null for the first one. */
  readonly change: TotalsChange | null;
}

/** Takes snapshots of one service. Owns the totals of the last one, and what the service was started with. */
export class SnapshotReader {
  readonly #client: Client;
  readonly #clock: Clock;
  #previous: { readonly totals: Totals; readonly atMs: number; readonly startedAt: string } | null = null;

  #program: { readonly command: readonly string[] | null; readonly startedAt: string } | null = null;

  constructor(client: Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Throws a CommandError, or the reason of the signal. */
  async read(signal?: AbortSignal): Promise<ServiceSnapshot> {
    const [health, version, { history }, totals] = await Promise.all([
      this.#client.getState('/health', healthBody, signal),
      this.#client.getState('/version', versionBody, signal),
      this.#client.getState('/health/history', historyBody, signal),
      this.#totals(signal),
    ]);
    const lastHour = totals === null ? await this.#lastHour(signal) : null;
    const { started_at: startedAt } = health.observability;
    const command = await this.#commandOf(startedAt, signal);
    const change = totals && this.#changeTo(totals, startedAt);
    const takenAt = this.#clock.now();
    const { url } = this.#client;
    return { url, takenAt, health, version, command, checks: history, totals, lastHour, change };
  }

  async #totals(signal?: AbortSignal): Promise<Totals | null> {
    try {
      return parseTotals(await this.#client.getText('/metrics', signal));
    } catch (error) {
      if (error instanceof ServiceError && this.#isNotForUs(error)) return null;
      throw error;
    }
  }

  /** The key lacks the scope, or none was given. A key that is not valid is a fault of the user. */
  #isNotForUs({ code }: ServiceError): boolean {
    return code === 'forbidden' || (code === 'unauthorized' && !this.#client.hasKey);
  }

  async #lastHour(signal?: AbortSignal): Promise<HourTotals | null> {
    const status = await this.#client.getIfTold('/status', statusOfHour, signal);
    return status && hourTotals(status.last_hour);
  }

  /** It changes with the service only. */
  async #commandOf(startedAt: string, signal?: AbortSignal): Promise<readonly string[] | null> {
    if (this.#program?.startedAt === startedAt) return this.#program.command;
    const setup = await this.#client.getIfTold('/setup', setupReport, signal);
    this.#program = { command: setup?.model_cli.command ?? null, startedAt };
    return this.#program.command;
  }

  #changeTo(totals: Totals, startedAt: string): TotalsChange | null {
    const atMs = this.#clock.monotonicMs();
    const previous = this.#previous;
    this.#previous = { totals, atMs, startedAt };
    if (previous === null) return null;
    const hasRestarted = previous.startedAt !== startedAt; // and counts from zero
    return totalsChange(hasRestarted ? null : previous.totals, totals, (atMs - previous.atMs) / 1000);
  }
}
