import { z } from 'zod';

const count = z.int().nonnegative();

export const healthBody = z.strictObject({
  status: z.enum(['ok', 'degraded', 'draining']),
  observability: z.strictObject({
    started_at: z.iso.datetime(),
    uptime_seconds: z.number().nonnegative(),
    model_runtime: z.strictObject({
      active_requests: count,
      queued_requests: count,
      max_concurrent: count,
      max_queue: count,
      rejected_total: count,
      queue_timeouts_total: count,
    }),
    workers: z.array(
      z.strictObject({
        id: z.int().positive(),
        pid: z.int().nullable(),
        state: z.enum(['starting', 'ready', 'stopping']),
        restarts: count,
      }),
    ),
  }),
});
export type HealthBody = z.infer<typeof healthBody>;
