import type { PrimaryFeature } from '../../primary/features/feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { type AuditValues, calls, endpoints, logEvents, variables } from './shared.js';

/** Records of what administrators do, and of what people do with own keys. An act without a record is refused. */
export const audit = {
  name: 'audit',
  ...{ variables, calls, endpoints, logEvents },
  ...{ requestFields: {}, requestHeaders: {}, keyOptions: {}, tables: [] },
  findFaults: () => [],
  findWarnings: () => [],
  loadPrimary: async (values: AuditValues) => (await import('./primary.js')).createAudit(values),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
