import { z } from 'zod';

/** Acts of which a record is written. */
const audited = [
  'key_made',
  'key_changed',
  'key_removed',
  'key_rotated',
  'client_purged',
  'job_ended',
  'health_rechecked',
  'store_backed_up',
  'service_reloaded',
] as const;

export const auditRecord = z.object({
  at: z.string(),
  act: z.enum(audited),
  by: z.string().meta({ description: 'Client that acted, such as `key ada`; for a reload `signal SIGHUP`.' }),
  target: z.string().nullable().meta({ description: 'Key, client, job or file that the act concerns.' }),
  request_id: z.string().nullable(),
});
export type AuditRecord = z.infer<typeof auditRecord>;

export const auditList = z
  .strictObject({ records: z.array(auditRecord), request_id: z.string() })
  .meta({ id: 'AuditList' });

export const auditLimitQuery = z
  .string()
  .regex(/^(?:1000|[1-9]\d{0,2})$/, 'must be a number from 1 to 1000')
  .meta({ description: 'Number of records, 100 by default.' });
