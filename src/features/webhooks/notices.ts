import { createHash } from 'node:crypto';
import type { ModelCli } from '../../primary/cli/model-cli.js';
import type { LimitAmount, LimitUse } from '../../shared/api/limit-use.js';
import type { JobForm } from '../../shared/background.js';
import { setNewest } from '../../shared/bounded-map.js';
import { type ClientText, noClient, writeClientId } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import type { QuotaWindow } from '../../shared/health.js';
import { newId } from '../../shared/ids.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import type { Notice } from './webhooks.js';

/** State of a model CLI that a notice may be about. */
export interface WatchedCli extends Pick<ModelCli, 'names' | 'label'> {
  readonly health: { readonly needsLogin: boolean; readonly windows: { readonly current: readonly QuotaWindow[] } };
}

export interface NoticeParts {
  readonly send: (notice: Notice) => void;
  /** Returns the use of all budgets. */
  readonly budgets: () => readonly LimitUse[];
  readonly clis: readonly WatchedCli[];
  readonly clock: Pick<Clock, 'every'>;
  /** Name of this host. Other hosts with the same store have their own logins. */
  readonly host: string;
}

/** A background job that has ended. */
export interface JobNotice {
  readonly id: string;
  readonly request: Pick<JobRequest, 'client' | 'operation' | 'requestId'>;
  readonly end: JobEnd;
  /** URL that its client has named; undefined if it has named none. */
  readonly callbackUrl: string | undefined;
}

/**
 * Whether receivers get a notice at the end of a job: a client that follows its job gets the end itself, and the line of
 * a batch has none.
 */
export function needsNotice(form: JobForm): boolean {
  return form.line === undefined && (form.isFollowed !== true || callbackIn(form) !== undefined);
}

/** Returns the URL that the client of a job has named; undefined if it has named none. */
export function callbackIn(form: JobForm): string | undefined {
  const { callbackUrl } = form as { readonly callbackUrl?: unknown };
  return typeof callbackUrl === 'string' ? callbackUrl : undefined;
}

const checkMs = 5000;
const nearlyUsed = 0.8;
const quotaNearlyUsed = 0.9;
/** Maximum number of remembered conditions. */
const maxKnown = 2000;

/** A condition of which the receiver is told when it begins. */
interface Condition {
  /** Identifies the condition in this service. */
  readonly key: string;
  /** Text from which the id of the notice is made; null for a new id each time the condition begins. */
  readonly id: string | null;
  /** Client that the notice is about; empty if it is about a group or the service. */
  readonly client: ClientText;
  readonly type: string;
  readonly data: object;
}

/**
 * Tells the operator's receiver of budgets and quotas that are nearly used, of logins that are needed, and of
 * background jobs that have ended. States are compared at an interval, so that no job waits for it.
 */
export class Notices {
  readonly #parts: NoticeParts;
  /** Conditions at the last check, which the receiver has been told of. */
  readonly #known = new Map<string, true>();

  constructor(parts: NoticeParts) {
    this.#parts = parts;
  }

  startChecks(): void {
    this.#parts.clock.every(checkMs, () => this.checkConditions());
  }

  /** Sends a notice for each condition that has begun since the last check. */
  checkConditions(): void {
    const conditions = [
      ...this.#parts.budgets().flatMap(budgetConditions),
      ...this.#parts.clis.flatMap((cli) => [...this.#quotaConditions(cli), ...this.#loginConditions(cli)]),
    ];
    const keys = new Set(conditions.map(({ key }) => key));
    for (const key of this.#known.keys()) if (!keys.has(key)) this.#known.delete(key);
    for (const { key, id, client, type, data } of conditions) {
      if (this.#known.has(key)) continue;
      setNewest(this.#known, key, true, maxKnown);
      this.#parts.send({ id: id === null ? newId() : idOf(id), client, type, data });
    }
  }

  jobEnded(job: JobNotice): void {
    const { client } = job.request;
    this.#parts.send({ id: `job_${job.id}`, client, type: 'job.ended', data: dataOf(job) });
  }

  #quotaConditions({ names, label, health }: WatchedCli): Condition[] {
    const { host } = this.#parts;
    return health.windows.current.flatMap(({ name: window, status, utilization, resetsAt }) => {
      if (status !== 'rejected' && (utilization ?? 0) < quotaNearlyUsed) return [];
      const key = ['quota', host, label, window, resetsAt ?? ''].join('.');
      const resets_at = resetsAt === null ? null : timestamp(resetsAt);
      const data = { host, ...names, window, utilization, resets_at };
      return [{ key, id: resetsAt === null ? null : key, client: noClient, type: 'quota.nearly_used', data }];
    });
  }

  #loginConditions({ names, label, health }: WatchedCli): Condition[] {
    if (!health.needsLogin) return [];
    const { host } = this.#parts;
    const data = { host, ...names };
    return [{ key: `login.${label}`, id: null, client: noClient, type: 'login.needed', data }];
  }
}

/** Returns the same id for the same text. It has no dot, which separates the signed parts of a notice. */
function idOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Returns what a receiver is told about a job that has ended: neither the prompt nor the answer. */
export function dataOf({ id, request, end }: JobNotice): object {
  const { client, operation, requestId } = request;
  const error = end.outcome === 'ok' ? null : end.failure.code;
  const times = { queue_ms: end.queueMs, execution_ms: end.executionMs };
  return { job_id: id, client, request_id: requestId, operation, outcome: end.outcome, error, ...times };
}

function budgetConditions({ client, kind, model, tokens, cost_usd }: LimitUse): Condition[] {
  return Object.entries({ tokens, cost_usd }).flatMap(([budget, amount]) =>
    amount === null ? [] : budgetCondition({ client, kind, ...(model !== undefined && { model }) }, budget, amount),
  );
}

/** Returns the condition of one budget. Its key has the limit, because a raised budget can be nearly used again. */
function budgetCondition(
  { client, kind, ...model }: Pick<LimitUse, 'client' | 'kind' | 'model'>,
  budget: string,
  amount: LimitAmount,
): Condition[] {
  const share = amount.used / amount.max;
  if (share < nearlyUsed) return [];
  const level = share < 1 ? 'nearly_used' : 'used_up';
  const about =
    kind === 'group' || kind === 'service' || kind === 'other' ? noClient : writeClientId({ kind, name: client });
  // a notice about a key or a group has the id that an earlier version has sent
  const subject = about === noClient || kind === 'key' ? client : about;
  const modelPart = model.model === undefined ? [] : [model.model];
  const key = ['budget', level, subject, ...modelPart, budget, amount.period, amount.max, amount.resets_at].join('.');
  return [
    { key, id: key, client: about, type: `budget.${level}`, data: { client, kind, ...model, budget, ...amount } },
  ];
}
