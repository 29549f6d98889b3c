import { z } from 'zod';
import { operations, waitReasons } from '../job.js';
import {
  breakerBody,
  observabilityBody,
  pressureShape,
  readinessBody,
  reasonBody,
  renewalFaultBody,
} from './health.js';
import { describeWaitReasons } from './wait-reasons.js';

const count = z.int().nonnegative();
const time = z.iso.datetime({ precision: 3 });

const clientName = z.string().nullable().meta({
  description: 'Name of the API key or local user, or the address; null for callers who may not see other clients.',
});

const slotsBody = z.strictObject({
  max: count,
  running: z
    .array(
      z.strictObject({
        job: z.int().positive().meta({ description: 'Number of the job, counted from the start of the service.' }),
        id: z.string().nullable().optional().meta({
          description:
            'ID for `DELETE /jobs/{job_id}`, which also ends jobs that are not background jobs; null for callers who may not see other clients.',
        }),
        client: clientName,
        operation: z.enum(operations),
        model: z
          .string()
          .nullable()
          .meta({ description: 'The model of the request, with its alias resolved; null if the request names none.' }),
        started_at: time,
      }),
    )
    .meta({ description: 'The longest running job first.' }),
  reserved: z
    .array(z.strictObject({ group: z.string(), slots: z.int().positive(), running: count, until: time }))
    .optional()
    .meta({
      description:
        'Slots that are reserved now, if there are any, by group, with the running jobs of the group, and the time until which they are: jobs of the group go before all others until so many of them run.',
    }),
});

const queueBody = z.strictObject({
  max: count,
  waiting: count,
  full_since: pressureShape.queue_full_since,
  refused_last_5_minutes: pressureShape.refused_last_5_minutes,
  clients: z
    .array(
      z.strictObject({
        client: clientName,
        waiting: z.int().positive(),
        oldest_since: time,
        reason: z
          .enum(waitReasons)
          .optional()
          .meta({ description: describeWaitReasons('the oldest job') }),
      }),
    )
    .meta({ description: 'Longest wait first; at most 50.' }),
});

const backgroundBody = z.strictObject({
  max: count.meta({ description: 'The maximum number of waiting jobs.' }),
  waiting: count.meta({
    description: 'With a shared store, the sum of all hosts, up to two seconds old.',
  }),
  running: count.meta({
    description: 'Background jobs that run on this host. Each has a slot and is one of the running jobs.',
  }),
});

/** One minute of the last hour, or five minutes of the last day. */
const minuteBody = z.strictObject({
  at: time.meta({ description: 'Start time.' }),
  requests: count.meta({
    description:
      'Answers that were sent, without the files of the console; workers report them up to ten seconds later.',
  }),
  errors: count.meta({ description: 'Answers with a status of 500 or more.' }),
  jobs: count.meta({ description: 'Jobs that have ended.' }),
  failed_jobs: count.meta({ description: 'Jobs of these that ended with another outcome than `ok` and `cancelled`.' }),
  refused: count.meta({
    description: 'Requests refused because of the queue, the limits of a client or a drain.',
  }),
  job_ms: z
    .strictObject({ p50: count, p95: count })
    .nullable()
    .meta({ description: 'Time from arrival to end; null if no job has ended. Exact within 2 %.' }),
});

const totalsBody = z
  .strictObject({
    requests: count.meta({
      description:
        'Answered requests, without those about the service itself (health, metrics, version, status, set-up) and the files of the console.',
    }),
    jobs: count.meta({ description: 'Jobs that have ended.' }),
    failed_jobs: count.meta({
      description: 'Jobs of these that ended with another outcome than `ok` and `cancelled`.',
    }),
    cancelled_jobs: count,
    refused: count.meta({ description: 'Jobs refused before they were admitted, and requests beyond a rate limit.' }),
    output_tokens: count.meta({ description: 'Tokens of answered jobs that the CLI reports.' }),
    first_deltas: count.meta({ description: 'Jobs whose time from slot to first text was measured.' }),
    first_delta_seconds: z.number().nonnegative().meta({ description: 'Sum of these times in seconds.' }),
  })
  .meta({
    description:
      'Counted since the start of the service. On the stream, workers report requests up to ten seconds later.',
  });

/** Status of the service. Each member is a section: the stream always sends whole sections. */
export const statusBody = z
  .strictObject({
    service: z.strictObject({
      status: z.enum(['ok', 'degraded', 'draining']),
      reasons: z.array(reasonBody).meta({ description: 'The same as in GET /health.' }),
      may_recheck: z.boolean().meta({
        description: 'Whether the caller may call POST /health/recheck, which needs the scope `admin`.',
      }),
      version: z.string(),
      started_at: time,
      drain_ends_at: time
        .nullable()
        .meta({ description: 'The latest end of the drain; null if the service does not drain.' }),
    }),
    slots: slotsBody,
    queue: queueBody,
    background_jobs: backgroundBody,
    workers: observabilityBody.shape.workers,
    cli_processes: observabilityBody.shape.cli_processes,
    renewals: z.array(renewalFaultBody).meta({ description: 'Renewals of processes that fail or are paused.' }),
    breaker: breakerBody,
    checks: z.array(readinessBody).meta({ description: 'The last readiness checks, at most 100, oldest first.' }),
    totals: totalsBody,
    last_hour: z.array(minuteBody).meta({
      description:
        'At most the last 60 minutes since the start of the service, oldest first; the last entry is the current minute.',
    }),
    last_day: z.array(minuteBody).meta({
      description:
        'The same figures in steps of five minutes: the steps of the last 24 hours that have ended, oldest first. A step without any events is left out. A restart of the service begins anew.',
    }),
  })
  .meta({ id: 'Status' });
export type StatusBody = z.infer<typeof statusBody>;

export const sectionNames = Object.keys(statusBody.shape) as [SectionName, ...SectionName[]];
export type SectionName = keyof StatusBody;

/** Changed sections of the status since the previous event. */
export const statusChange = statusBody.partial().meta({ id: 'StatusChange' });
export type StatusChange = z.infer<typeof statusChange>;

/** Functions that each make one section of the status. */
export type Sections = { readonly [N in SectionName]: () => StatusBody[N] };
