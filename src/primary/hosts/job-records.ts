import type { JobForm } from '../../shared/background.js';
import type { JobEnd } from '../../shared/job.js';
import type { AcceptedJob, JobRecord, SharedRecord } from '../store/contract/jobs.js';

/** Fields of the hash of a job, in this order. */
export const recordFields = [
  ...['client', 'form', 'operation', 'requestId', 'status'],
  ...['createdAt', 'startedAt', 'endedAt', 'end', 'isReplaced'],
] as const;
export const acceptedFields = ['status', 'form', 'createdAt', 'request'] as const;

type JobFields = readonly (Buffer | null)[];

export function recordOf(id: string, fields: JobFields): SharedRecord {
  const [client, form, operation, requestId, status, createdAt, startedAt, endedAt, end, isReplaced] = fields;
  return {
    id,
    client: String(client),
    form: JSON.parse(String(form)) as JobForm,
    operation: String(operation) as JobRecord['operation'],
    requestId: String(requestId),
    status: String(status) as JobRecord['status'],
    createdAt: Number(createdAt),
    startedAt: timeOf(startedAt),
    endedAt: timeOf(endedAt),
    end: end ? (JSON.parse(String(end)) as JobEnd) : null,
    ...(isReplaced && { isReplaced: true }),
  };
}

/** null where it waits no longer. */
export function acceptedOf(id: string, [status, form, createdAt, request]: JobFields): AcceptedJob | null {
  if (String(status) !== 'queued') return null;
  return {
    id,
    form: JSON.parse(String(form)) as JobForm,
    request: JSON.parse(String(request)) as AcceptedJob['request'],
    createdAt: Number(createdAt),
  };
}

function timeOf(field: Buffer | null | undefined): number | null {
  return field ? Number(field) : null;
}

/** Jobs that wait, as of this host's last renewal. */
export interface WaitingSeen {
  readonly count: number;
  /** Of the job that has waited longest. */
  readonly id: string | null;
  readonly since: number | null;
}

export function waitingSeen([oldest, since]: readonly Buffer[], count: number): WaitingSeen {
  const isNone = oldest === undefined;
  return { count, id: isNone ? null : String(oldest), since: isNone ? null : Number(since) };
}
