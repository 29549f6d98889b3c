import { z } from 'zod';
import { operatorActs } from '../../shared/acts.js';

export const auditRecord = z.object({
  at: z.string(),
  act: z.enum(operatorActs),
  by: z.string().meta({ description: 'Client that acted, such as `key ada`; for a reload `signal SIGHUP`.' }),
  target: z.string().nullable().meta({ description: 'Key, client, job or file that the act concerns.' }),
  request_id: z.string().nullable(),
  counts: z
    .record(z.string(), z.int().nonnegative())
    .optional()
    .meta({ description: 'Numbers of the things that were removed or exported, by kind.' }),
  sha256: z.string().optional().meta({ description: 'SHA-256 of an export.' }),
});
export type AuditRecord = z.infer<typeof auditRecord>;

export const auditList = z
  .strictObject({ records: z.array(auditRecord), request_id: z.string() })
  .meta({ id: 'AuditList' });

export const auditLimitQuery = z
  .string()
  .regex(/^(?:1000|[1-9]\d{0,2})$/, 'must be a number from 1 to 1000')
  .meta({ description: 'Number of records, 100 by default.' });
