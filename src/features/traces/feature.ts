import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { spanExportOf } from './settings.js';
import { calls, logEvents, metrics, type TraceValues, variables } from './shared.js';

/** Spans of requests and jobs, exported to a collector of OpenTelemetry. */
export const traces = {
  ...emptyFeature,
  name: 'traces',
  needs: ['protocols'],
  ...{ variables, calls, logEvents, metrics },
  loadPrimary: async (values: TraceValues) => (await import('./primary.js')).loadTraces(spanExportOf(values)),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
