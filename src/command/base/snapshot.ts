import { type HealthBody, healthBody, historyBody, type ReadinessBody } from '../../shared/api/health.js';
import { setupReport } from '../../shared/api/setup.js';
import { type StatusBody, statusBody } from '../../shared/api/status.js';
import { type VersionBody, versionBody } from '../../shared/api/version.js';
import type { Clock } from '../../shared/clock.js';
import type { Client } from './client.js';
import { ServiceError } from './errors.js';

/** Counters of the service since its start. The names appear in the output of `status --json`. */
export interface Totals {
  /** HTTP requests, except those for paths about the service itself and for files of the console. */
  readonly requests: number;
  readonly jobs: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly refused: number;
  readonly tokensOut: number;
  /** Number of measured times to the first delta, and their sum in seconds. */
  readonly firsts: number;
  readonly firstSeconds: number;
}

/** Increases of the counters in a period. */
export type TotalsChange = Totals & { readonly seconds: number };

export function totalsOf(counted: StatusBody['totals']): Totals {
  return {
    requests: counted.requests,
    jobs: counted.jobs,
    failed: counted.failed_jobs,
    cancelled: counted.cancelled_jobs,
    refused: counted.refused,
    tokensOut: counted.output_tokens,
    firsts: counted.first_deltas,
    firstSeconds: counted.first_delta_seconds,
  };
}

/** Returns the increases between two snapshots. `before` is null for the start of the service. */
export function totalsChange(before: Totals | null, after: Totals, seconds: number): TotalsChange {
  const names = Object.keys(after) as (keyof Totals)[];
  const increases = Object.fromEntries(names.map((name) => [name, after[name] - (before?.[name] ?? 0)]));
  return { ...(increases as Record<keyof Totals, number>), seconds };
}

const countedStatus = statusBody.pick({ totals: true, slots: true });

/** The state of a service at one moment. */
export interface ServiceSnapshot {
  readonly url: string;
  /** Milliseconds since the epoch. */
  readonly takenAt: number;
  readonly version: VersionBody;
  /** Words that start the model CLI; null if the service does not report them. */
  readonly command: readonly string[] | null;
  readonly health: HealthBody;
  /** Readiness checks, oldest first. */
  readonly checks: readonly ReadinessBody[];
  /** Counters; null if this client may not read the status, or the service has none. */
  readonly totals: Totals | null;
  /** Slots that are reserved now; none if this client may not read the status. */
  readonly reserved: NonNullable<StatusBody['slots']['reserved']>;
  /** Increases since the previous snapshot; null for the first one. */
  readonly change: TotalsChange | null;
}

/** Takes snapshots of one service. Owns the counters of the last snapshot and the command line of the model CLI. */
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
    const [health, version, { history }, status] = await Promise.all([
      this.#client.getState('/health', healthBody, signal),
      this.#client.getState('/version', versionBody, signal),
      this.#client.getState('/health/history', historyBody, signal),
      this.#status(signal),
    ]);
    const totals = status === null ? null : totalsOf(status.totals);
    const { started_at: startedAt } = health.observability;
    const command = await this.#commandOf(startedAt, signal);
    const change = totals && this.#changeTo(totals, startedAt);
    const takenAt = this.#clock.now();
    const { url } = this.#client;
    const reserved = status?.slots.reserved ?? [];
    return { url, takenAt, health, version, command, checks: history, totals, reserved, change };
  }

  async #status(signal?: AbortSignal) {
    try {
      return await this.#client.getState('/status', countedStatus, signal);
    } catch (error) {
      const code = error instanceof ServiceError ? error.code : null;
      if (code === 'not_found') return null;
      if (code === 'unauthorized' && this.#client.key === null) return null; // an invalid key is an error of the user
      throw error;
    }
  }

  /** Returns the command line of the model CLI. Requests it once for each start of the service. */
  async #commandOf(startedAt: string, signal?: AbortSignal): Promise<readonly string[] | null> {
    if (this.#program?.startedAt === startedAt) return this.#program.command;
    const setup = await this.#client.getOptional('/setup', setupReport, signal);
    this.#program = { command: setup?.model_cli.command ?? null, startedAt };
    return this.#program.command;
  }

  #changeTo(totals: Totals, startedAt: string): TotalsChange | null {
    const atMs = this.#clock.monotonicMs();
    const previous = this.#previous;
    this.#previous = { totals, atMs, startedAt };
    if (previous === null) return null;
    const hasRestarted = previous.startedAt !== startedAt; // counters then start from zero
    return totalsChange(hasRestarted ? null : previous.totals, totals, (atMs - previous.atMs) / 1000);
  }
}
