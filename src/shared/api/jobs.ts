import { z } from 'zod';
import { jobStatuses } from '../background.js';
import { operations, waitReasons } from '../job.js';
import { askResult } from './ask.js';
import { chatResult } from './chat.js';
import { errorBody } from './error.js';

/** Jobs in the API: jobs with an open request, and background jobs, which continue without a request. */

const time = z.iso.datetime({ precision: 3 });
const jobId = z
  .string()
  .meta({ description: 'As in `GET /jobs`; of a background job also in the `Location` of the 202.' });

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
        'Whether it is a background job. If not, its request is open and gets the answer: the job is listed until it ends.',
    }),
    title: z.string().optional().meta({
      description:
        'The first 80 characters of what was asked, in one line: a space for each line break or other control character. Missing in a list of all clients, and if the job was accepted before there were titles.',
    }),
    operation: z.enum(operations),
    status: z.enum(jobStatuses),
    position: z.int().positive().nullable().meta({
      description: 'While it is queued: how many slots must become free before it starts, as things are now.',
    }),
    reason: z.enum(waitReasons).nullable().optional().meta({
      description:
        'While it is queued: why. All slots are taken, or callers go first (`slot`); its client (`client`), or its model CLI (`cli`), has as many jobs running as it may; another turn on its conversation comes first (`conversation`); the account of its model CLI holds jobs back (`account`).',
    }),
    created_at: time,
    started_at: time.nullable(),
    ended_at: time.nullable(),
    cancelled_by: z
      .literal('administrator')
      .optional()
      .meta({ description: 'Present if an administrator has ended it, not its client.' }),
    client: z.string().optional().meta({ description: 'In a list of all clients: whose it is, such as `key ada`.' }),
  })
  .meta({ id: 'ListedJob' });

export type ListedJob = z.infer<typeof listedJob>;

export const jobResult = z.union([askResult, chatResult, z.looseObject({ object: z.literal('response') })]);
export type JobResult = z.infer<typeof jobResult>;

export const jobBody = listedJob
  .extend({
    result: jobResult.optional().meta({
      description: 'If it has succeeded: the body of the response to the same request without `Prefer: respond-async`.',
    }),
    error: errorBody.optional().meta({ description: 'If it has failed: the body of the error.' }),
    request_id: z.string(),
  })
  .meta({ id: 'Job' });
export type JobBody = z.infer<typeof jobBody>;

export const jobList = z
  .strictObject({
    jobs: z.array(listedJob).meta({
      description: 'First the jobs whose requests are open, then the background jobs, each the newest one first.',
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
    status: z.enum(jobStatuses).nullable().meta({ description: 'Its status now; null if it was deleted.' }),
    deleted: z.boolean().meta({ description: 'Whether it is forgotten: it had ended before.' }),
    request_id: z.string(),
  })
  .meta({ id: 'DeletedJob' });
export type DeletedJob = z.infer<typeof deletedJob>;

export const jobCursorQuery = z
  .string()
  .regex(/^-?\d{1,15}$/, 'must be the next_cursor of a page')
  .meta({ description: 'The `next_cursor` of the page before.' });
export const statusQuery = z
  .enum(jobStatuses, `must be one of ${jobStatuses.join(', ')}`)
  .meta({ description: 'Only jobs with this status.' });
const switchQuery = z.enum(['true', 'false'], 'must be true or false');
export const allQuery = switchQuery.meta({
  description: 'Those of all clients; needs an API key with the scope `admin`.',
});
export const keepEndedQuery = switchQuery.meta({ description: 'One that has ended is not forgotten.' });
export const lastEventId = z
  .string()
  .regex(/^\d{1,15}$/, 'must be the id of an event')
  .meta({ description: 'The `id` of the last event that you received: the stream continues after it.' });
