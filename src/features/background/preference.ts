import type { Request } from 'express';
import type { LeaveJob } from '../../worker/jobs/admission.js';
import { acceptJob } from './answers.js';

/** Whether the client sends `Prefer: respond-async` (RFC 7240, by which an empty value counts as no value). */
export function prefersAsync(req: Pick<Request, 'get'>): boolean {
  return asyncPreference(req) !== undefined;
}

/** Whether the client sends `Prefer: respond-async; followed`, because it will follow the events of its job. */
export function followsJob(req: Pick<Request, 'get'>): boolean {
  return /;\s*followed\s*(=\s*)?(;|$)/i.test(asyncPreference(req) ?? '');
}

function asyncPreference(req: Pick<Request, 'get'>): string | undefined {
  const strings = /"(?:\\.?|[^"\\])*(?:"|$)/g;
  const unquoted = (req.get('prefer') ?? '').replace(strings, (text) => (text === '""' ? '' : 'string'));
  return unquoted.split(',').find((preference) => /^\s*respond-async\s*(=\s*)?(;|$)/i.test(preference));
}

/** Accepts the job of a request to the native API if its client prefers not to wait for the answer. */
export const leaveIfPreferred: LeaveJob = async (parts, res, job, route) => {
  if (!prefersAsync(res.req)) return false;
  const isFollowed = followsJob(res.req) && ({ isFollowed: true } as const);
  await acceptJob(parts, res, job, { route, model: null, ...isFollowed });
  return true;
};
