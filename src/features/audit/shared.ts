import { z } from 'zod';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import { absolutePath } from '../../shared/config/values.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import { auditLimitQuery, auditList, auditRecord } from './records.js';

/** Tables of the audit, which both processes and the documents read. */

export const variables = {
  MODEL_API_AUDIT_FILE: {
    ...{ schema: absolutePath, fallback: null, secrecy: 'none' },
    meaning: 'file with a line of JSON for each [act of an administrator](clients.md#audit)',
    shownDefault: 'none',
  },
} as const satisfies FeatureVariables;

export type AuditValues = ValuesOf<typeof variables>;

export const calls = {
  /** Returns the newest records, the newest first. */
  audit: { request: z.object({ limit: z.int() }), answer: z.object({ records: z.array(auditRecord) }) },
};

export const endpoints = [
  {
    method: 'GET',
    route: '/audit',
    errors: ['unauthorized', 'forbidden', 'rate_limited'],
    id: 'listAudit',
    summary: 'What administrators have done',
    description:
      'The newest records first: keys over HTTP, purged clients, ended jobs, health checks, backups, reloads. Without `MODEL_API_AUDIT_FILE`, only those since the start of the service.',
    query: { limit: auditLimitQuery.optional() },
    alwaysNeedsKey: true,
    answer: auditList,
    answerText: 'The records.',
  },
] as const satisfies readonly FeatureEndpoint[];

export const logEvents = {
  audit_failed: 'the audit file cannot be written, so an act of an administrator was refused: error',
} as const;
