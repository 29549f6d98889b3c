import { z } from 'zod';
import { jobStatuses } from '../background.js';
import { operations, waitReasons } from '../job.js';
import { askResult } from './ask.js';
import { chatResult } from './chat.js';
import { errorBody } from './error.js';
import { describeWaitReasons } from './wait-reasons.js';

/** Jobs in the API: jobs with an open request, and background jobs, which continue without a request. */

const time = z.iso.datetime({ precision: 3 });
const jobId = z.string().meta({
  description: 'The ID that `GET /jobs` lists; the `Location` of the 202 also contains that of a background job.',
});

export const acceptedBody = z
  .strictObject({
    job_id: jobId,
    status: z.literal('queued'),
    created_at: time,
    durable: z.boolean().meta({ description: 'Whether the job outlives a restart of the service.' }),
    request_id: z.string(),
  })
  .meta({ id: 'AcceptedJob' });
export type AcceptedBody = z.infer<typeof acceptedBody>;

const listedJob = z
  .strictObject({
    job_id: jobId,
    background: z.boolean().optional().meta({
      description:
        'Whether this is a background job. Otherwise its request is open and receives the answer, and the job is listed until it ends.',
    }),
    title: z.string().optional().meta({
      description:
        'The first 80 characters of the prompt, in one line: a space replaces each line break and other control character. Missing in a list of all clients, and for jobs from a version without titles.',
    }),
    operation: z.enum(operations),
    status: z.enum(jobStatuses),
    position: z.int().positive().nullable().meta({
      description:
        'For a queued job: the number of slots that must become free before it starts, if nothing else changes.',
    }),
    reason: z
      .enum(waitReasons)
      .nullable()
      .optional()
      .meta({ description: describeWaitReasons('a queued job') }),
    created_at: time,
    started_at: time.nullable(),
    ended_at: time.nullable(),
    cancelled_by: z
      .literal('administrator')
      .optional()
      .meta({ description: 'Present if an administrator, not its client, has ended the job.' }),
    client: z.string().optional().meta({ description: 'In a list of all clients: the client, such as `key ada`.' }),
  })
  .meta({ id: 'ListedJob' });

export type ListedJob = z.infer<typeof listedJob>;

export const jobResult = z.union([askResult, chatResult, z.looseObject({ object: z.literal('response') })]);
export type JobResult = z.infer<typeof jobResult>;

export const jobBody = listedJob
  .extend({
    result: jobResult.optional().meta({
      description:
        'For a job that has succeeded: the body of the response to the same request without `Prefer: respond-async`.',
    }),
    why: z.array(z.string()).optional().meta({
      description:
        'Why the job has its model, and why it waited, in sentences for people. Missing for a job that ran before a restart or on another host, and for old ones.',
    }),
    error: errorBody.optional().meta({ description: 'For a job that has failed: the body of the error.' }),
    request_id: z.string(),
  })
  .meta({ id: 'Job' });
export type JobBody = z.infer<typeof jobBody>;

export const jobList = z
  .strictObject({
    jobs: z.array(listedJob).meta({
      description: 'First the jobs whose requests are open, then the background jobs, the newest first in both groups.',
    }),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: 'Send it as `cursor` to get the next page; null on the last page.' }),
    request_id: z.string(),
  })
  .meta({ id: 'JobList' });
export type JobList = z.infer<typeof jobList>;

export const deletedJob = z
  .strictObject({
    success: z.literal(true),
    job_id: jobId,
    status: z
      .enum(jobStatuses)
      .nullable()
      .meta({ description: 'The status after the request; null if the job was deleted.' }),
    deleted: z
      .boolean()
      .meta({ description: 'Whether the record of the job was deleted, because the job had already ended.' }),
    request_id: z.string(),
  })
  .meta({ id: 'DeletedJob' });
export type DeletedJob = z.infer<typeof deletedJob>;

export const jobCursorQuery = z
  .string()
  .regex(/^-?\d{1,15}$/, 'must be the next_cursor of an earlier page')
  .meta({ description: 'The `next_cursor` of the previous page.' });
export const statusQuery = z
  .enum(jobStatuses, `must be one of ${jobStatuses.join(', ')}`)
  .meta({ description: 'Only jobs with this status.' });
export const switchQuery = z.enum(['true', 'false'], 'must be true or false');
export const allQuery = switchQuery.meta({
  description: 'The jobs of all clients; needs an API key with the scope `admin`.',
});
export const keepEndedQuery = switchQuery.meta({ description: 'The record of an ended job is not deleted.' });
export const lastEventId = z
  .string()
  .regex(/^\d{1,15}(?:-\d{1,15})?$/, 'must be the id of an event')
  .meta({ description: 'The `id` of the last event that you received: the stream continues after it.' });
