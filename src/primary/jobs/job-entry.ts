import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { type RelayError, shuttingDown, toRelayError } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import type { Phase } from '../../shared/phase.js';
import { KnownModels, type ModelCatalog } from '../cli/model-catalog.js';
import type { TurnGate } from '../conversations/turn-gate.js';

/** Counts the refused requests of clients. */
interface RefusalCounter {
  countRefusal(client: ClientText): void;
}

export interface JobEntryParts {
  phase(): Phase;
  /** Returns the remaining seconds of a drain. */
  drainSecondsLeft(): number;
  readonly features: { startJob(request: JobRequest): void } & RefusalCounter;
  readonly knownModels: Pick<KnownModels, 'explain'>;
  readonly catalog: Pick<ModelCatalog, 'resolveRequest'>;
  readonly turnGate: Pick<TurnGate, 'admitting'>;
  readonly clients: {
    checkAccess(client: ClientText, now: number): void;
    countedGroupsOf(client: ClientText, named: readonly string[]): readonly string[];
  };
  readonly jobMetrics: { countDrainRefusal(): void; countBudgetRefusal(): void };
  readonly clientMetrics: RefusalCounter;
  readonly clock: Pick<Clock, 'now'>;
  /** Called after each call that leaves garbage, to schedule garbage collection. */
  noteActivity(): void;
}

const minuteMs = 60_000;
const recentMinutes = 5;

/** Admits the jobs of requests, and counts the requests that the service refuses. */
export class JobEntry {
  readonly #parts: JobEntryParts;
  /** Refused requests of the last minutes, by the number of the minute since the epoch. */
  readonly #refusals = new Map<number, number>();

  constructor(parts: JobEntryParts) {
    this.#parts = parts;
  }

  /**
   * Admits the job of a caller or a background job: finds its model, then waits until no other host changes its
   * conversation. The remaining checks and `admit` run together, so that no other job comes between them.
   */
  async admit<T>(request: JobRequest, admit: (job: JobRequest) => T | Promise<T>): Promise<T> {
    const { catalog, clients, features, turnGate, knownModels, clock } = this.#parts;
    this.#parts.noteActivity();
    const { groups: named, ...resolved } = await catalog.resolveRequest(request);
    const groups = clients.countedGroupsOf(request.client, named ?? []);
    const job = { ...resolved, ...(groups.length > 0 && { groups }) };
    try {
      return await turnGate.admitting(job, () => {
        // The worker may not know of a drain yet.
        if (isOver(this.#parts.phase())) throw shuttingDown(this.#parts.drainSecondsLeft());
        // the runner checks both again when a waiting job gets its slot
        clients.checkAccess(job.client, clock.now());
        features.startJob(job);
        return admit(job);
      });
    } catch (error) {
      this.#countRefusedJob(job.client, toRelayError(error));
      throw KnownModels.isUnknown(error) ? await knownModels.explain(error, job.client) : error;
    }
  }

  /** Counts a job that was refused by a drain, by its budget or for lack of space, but no invalid one. */
  #countRefusedJob(client: ClientText, { code, reason }: RelayError): void {
    const { jobMetrics } = this.#parts;
    if (code === 'shutting_down') jobMetrics.countDrainRefusal();
    else if (reason === 'budget') jobMetrics.countBudgetRefusal();
    else if (code !== 'concurrency_limited') return;
    this.countRefusal(client);
  }

  /** Counts a request that a worker has refused because of a drain. */
  refuseDraining(client: ClientText): { readonly retryAfterSeconds: number } {
    this.#parts.jobMetrics.countDrainRefusal();
    this.countRefusal(client);
    return { retryAfterSeconds: this.#parts.drainSecondsLeft() };
  }

  countRefusal(client: ClientText): void {
    const { clientMetrics, features } = this.#parts;
    const minute = this.#minute;
    const count = (this.#refusals.get(minute) ?? 0) + 1;
    for (const known of this.#refusals.keys()) if (!isRecent(known, minute)) this.#refusals.delete(known);
    this.#refusals.set(minute, count);
    for (const counter of [features, clientMetrics]) counter.countRefusal(client);
  }

  /** Requests refused in the current minute and the four before it. */
  get recentlyRefused(): number {
    const current = this.#minute;
    const recent = [...this.#refusals].filter(([minute]) => isRecent(minute, current));
    return recent.reduce((sum, [, count]) => sum + count, 0);
  }

  get #minute(): number {
    return Math.floor(this.#parts.clock.now() / minuteMs);
  }
}

/** Whether a minute is among the recent ones. The clock may have been set back. */
function isRecent(minute: number, current: number): boolean {
  return minute <= current && minute > current - recentMinutes;
}

function isOver(phase: Phase): boolean {
  return phase === 'draining' || phase === 'stopped';
}
