import { invalid } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import type { WorkerPart } from '../../worker/features/feature.js';
import type { JobOfRequest } from '../../worker/jobs/admission.js';
import { type Priority, priorities, priorityHeader } from './shared.js';

export function createPart(): WorkerPart {
  return { routes: [], annotateJob: (job) => ({ ...priorityOf(job), ...longestWait(job) }) };
}

const header = priorityHeader.toLowerCase();

/**
 * Priorities by the `service_tier` of OpenAI's and Anthropic's APIs. A tier that the client may not use is no error.
 */
const byTier: ReadonlyMap<unknown, JobRequest['priority']> = new Map([
  ['flex', 'flex'],
  ['priority', 'preferred'],
  ['auto', 'default'],
  ['default', 'default'],
  ['standard_only', 'default'],
] as const);

/** Returns the priority of the header, or else that of the service tier. */
export function priorityOf({ req, serviceTier }: Pick<JobOfRequest, 'req' | 'serviceTier'>): Partial<JobRequest> {
  const [value, ...others] = req.headersDistinct[header] ?? [];
  if (value === undefined) {
    const priority = byTier.get(serviceTier);
    return priority === undefined ? {} : { priority };
  }
  const priority = priorities.find((each): each is Priority => each === value);
  if (others.length > 0 || priority === undefined)
    throw invalid(priorityHeader, `must be one of ${priorities.join(', ')}`);
  return { priority };
}

/** Longest wait that a client can request, in seconds. */
const maxSeconds = 3600;

/** Returns the longest wait for a slot, from the first `wait` in `Prefer` (RFC 7240, by which other values are ignored). */
export function longestWait({ req }: Pick<JobOfRequest, 'req'>): Partial<JobRequest> {
  const strings = /"(?:\\.?|[^"\\])*(?:"|$)/g;
  const sent = req.headers.prefer ?? [];
  const unquoted = sent.toString().replace(strings, (text) => (/^"\d+"$/.test(text) ? text.slice(1, -1) : 'string'));
  const first = unquoted.split(',').find((each) => /^\s*wait\s*(?:[=;]|$)/i.test(each)) ?? '';
  const seconds = /^\s*wait\s*=\s*(\d+)\s*(?:;|$)/i.exec(first)?.[1];
  return seconds === undefined ? {} : { maxWaitMs: Math.min(Number(seconds), maxSeconds) * 1000 };
}
