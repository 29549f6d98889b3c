import { z } from 'zod';
import {
  breakerReasons,
  breakerStates,
  contextChanges,
  quotaStatuses,
  quotaWindowNames,
  readinessStatuses,
  readinessTriggers,
  renewalFaultReasons,
} from '../health.js';

const count = z.int().nonnegative();
const time = z.iso.datetime({ precision: 3 });

export const readinessBody = z
  .strictObject({
    status: z.enum(readinessStatuses),
    checked_at: time.nullable(),
    duration_ms: count,
    trigger: z.enum(readinessTriggers),
    cli: z.string().meta({ description: 'The name of the CLI; its kind if only one is configured.' }).optional(),
    account: z
      .string()
      .optional()
      .meta({ description: 'The name of the account; missing for the login of the service.' }),
    adapter: z.string(),
    version: z.string().nullable(),
    error: z.string().optional(),
  })
  .meta({ id: 'Readiness' });
export type ReadinessBody = z.infer<typeof readinessBody>;

const circuit = {
  state: z.enum(breakerStates).meta({
    description: '`open`: no job is started; `half_open`: one trial job is started.',
  }),
  reason: z.enum(breakerReasons).optional(),
  since: time.optional(),
  /** Time when the next job is admitted. */
  until: time.optional(),
};

export const breakerBody = z
  .strictObject({
    ...circuit,
    models: z
      .array(z.strictObject({ model: z.string(), account: z.string().optional(), ...circuit }))
      .meta({ description: 'Models whose jobs are blocked; an empty name stands for jobs without a model.' }),
    windows: z
      .array(
        z.strictObject({
          name: z.enum(quotaWindowNames),
          account: z.string().optional(),
          status: z.enum(quotaStatuses),
          utilization: z.number().nullable(),
          resets_at: time.nullable(),
        }),
      )
      .meta({ description: 'Quota windows of the account that the model CLI last reported.' }),
  })
  .meta({ id: 'Breaker' });
export type BreakerBody = z.infer<typeof breakerBody>;

/** Parts of the service that can be degraded, and causes. */
const reasonParts = ['cli', 'store', 'quota', 'overloaded', 'keys', 'accounts', 'service'] as const;

export const reasonBody = z
  .strictObject({
    part: z.enum(reasonParts).meta({
      description:
        '`cli`: a model CLI cannot be used; `store`: the store cannot be written; `quota`: an account has used up its quota; `overloaded`: the provider of a model has too many requests; `keys`, `accounts`: a file with API keys or accounts has a fault; `service`: a defect, in the last ten minutes.',
    }),
    name: z.string().meta({
      description:
        'Name of the CLI, or the kind of the store; `primary` for `service`; `keys_file`, `made_keys` or `accounts_file` for a file; for `quota` and `overloaded` the CLI or the model whose jobs are blocked.',
    }),
    message: z.string().meta({ description: 'One sentence for people.' }),
    until: time.optional().meta({ description: 'No job is started before this time.' }),
  })
  .meta({ id: 'Reason' });
export type ReasonBody = z.infer<typeof reasonBody>;

export const fileBody = z
  .strictObject({
    name: z.enum(['keys_file', 'made_keys', 'accounts_file']),
    modified_at: time.nullable().meta({
      description:
        'Last change of the file when the service read the text that it uses (ctime, which a copy does not keep); null if the file has not been read.',
    }),
    faults: count.meta({ description: 'Number of faults. What they are about is refused.' }),
  })
  .meta({ id: 'ReloadedFile' });
export type FileBody = z.infer<typeof fileBody>;

export const renewalFaultBody = z
  .strictObject({
    cli: z.string().meta({ description: 'The name of the CLI.' }),
    account: z.string().optional(),
    kind: z.enum(contextChanges).meta({
      description:
        '`renewal`: a process becomes as good as new for the next question of its client; `rewinding`: it returns to an earlier message.',
    }),
    reason: z.enum(renewalFaultReasons).meta({
      description:
        'Reason for the last failure: the program has not answered in time (`late`), or has not proven what is left in its context (`unproven`). `memory`: memory is short, so that no process is renewed.',
    }),
    message: z.string().meta({ description: 'One sentence for people.' }),
    failing_clients: count.meta({ description: 'Clients whose last attempt has failed within an hour.' }),
    paused_clients: count.meta({ description: 'Clients of these for which none is attempted for an hour.' }),
    until: time.nullable().meta({ description: 'End of the last pause; null without a pause.' }),
  })
  .meta({ id: 'RenewalFault' });
export type RenewalFaultBody = z.infer<typeof renewalFaultBody>;

/** Figures that show whether the service is overloaded. */
export const pressureShape = {
  queue_full_since: time.nullable().meta({
    description: 'The time since which the queue is full; null unless it has been full for 10 s.',
  }),
  refused_last_5_minutes: count.meta({
    description:
      'Requests refused in this minute and the four before it, because of the queue, the limits of a client or a drain.',
  }),
};

export const observabilityBody = z
  .strictObject({
    started_at: time,
    uptime_seconds: z.number().nonnegative(),
    model_runtime: z.strictObject({
      active_requests: count,
      queued_requests: count,
      /** Time for which each running job has had its slot, longest first. */
      active_ages_ms: z.array(count).optional(),
      max_concurrent: count,
      max_queue: count,
      rejected_total: count,
      queue_timeouts_total: count,
      queue_full_since: pressureShape.queue_full_since.optional(),
      refused_last_5_minutes: pressureShape.refused_last_5_minutes.optional(),
      breaker: breakerBody.optional(),
    }),
    cli_processes: z.strictObject({
      standby: count,
      renewed: count,
      live: count,
      tools: count,
      busy: count,
      stopping: count,
    }),
    renewals: z
      .array(renewalFaultBody)
      .optional()
      .meta({ description: 'Renewals of processes that fail or are paused; missing if there are none.' }),
    workers: z.array(
      z.strictObject({
        id: z.int().positive(),
        /** Process id; visible only to administrators if API keys are configured. */
        pid: z.int().nullable().optional(),
        state: z.enum(['starting', 'ready', 'stopping']),
        restarts: count,
      }),
    ),
  })
  .meta({ id: 'Observability' });

/** Kind of a store. The description of the API lists the kinds of the core and of the features. */
export const storeKind = z.string().meta({ enum: [] });

const storeBody = z
  .strictObject({
    kind: storeKind,
    up: z.boolean().meta({ description: 'Whether the last write succeeded.' }),
  })
  .meta({ description: 'Kind of the store of conversations.' });

export const healthBody = z
  .strictObject({
    status: z.enum(['ok', 'degraded', 'draining']),
    reasons: z
      .array(reasonBody)
      .meta({ description: 'Reasons why the service is degraded. Empty if it is `ok`.' })
      .optional(),
    drain_ends_at: time
      .optional()
      .meta({ description: 'The latest end of the drain; missing if the service does not drain.' }),
    strict_mode: z.boolean(),
    readiness: z.strictObject({
      model_cli: readinessBody,
      model_clis: z
        .array(readinessBody)
        .meta({
          description:
            'All model CLIs and accounts if there are several; `model_cli` is the first. Accounts of other clients are only visible to administrators.',
        })
        .optional(),
    }),
    store: storeBody.optional(),
    files: z
      .array(fileBody)
      .meta({ description: 'Files with keys and accounts, which the service reads again when they change.' })
      .optional(),
    observability: observabilityBody,
  })
  .meta({ id: 'Health' });
export type HealthBody = z.infer<typeof healthBody>;

export const historyBody = z
  .strictObject({
    observability: observabilityBody,
    history: z.array(readinessBody),
  })
  .meta({ id: 'HealthHistory' });
export type HistoryBody = z.infer<typeof historyBody>;

/** Time with a UTC offset. */
export const sinceQuery = z.iso.datetime({ offset: true }).meta({
  description: 'Only checks that began after this time.',
  examples: ['2026-01-31T12:00:00Z'],
});
