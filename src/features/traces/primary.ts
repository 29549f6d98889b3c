import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import type { StoredKind } from '../../primary/features/stored-kind.js';
import { spansOfJobs } from './job-spans.js';
import type { Sampler } from './sampling.js';
import type { SpanExport } from './settings.js';
import { metrics } from './shared.js';
import type { SpanExporter } from './span-exporter.js';

/** Export of spans, as the operator has configured it. */
interface ConfiguredExport {
  readonly sampler: Sampler;
  readonly openExporter: (host: PrimaryCore['host']) => SpanExporter;
}

/** Loads the exporter only if spans are exported, because its code needs memory. */
export async function loadTraces(settings: SpanExport | null): Promise<CreatePrimaryPart> {
  if (settings === null) return createTraces(null);
  const { openSpanExporter } = await import('./span-exporter.js');
  return createTraces({ sampler: settings.sampler, openExporter: (host) => openSpanExporter(settings, host) });
}

/** Creates the part that exports spans. `settings` is null if none are exported. */
export function createTraces(settings: ConfiguredExport | null): CreatePrimaryPart {
  return ({ host }) => {
    const exporter = settings?.openExporter(host) ?? null;
    return {
      ...(exporter !== null && { job: { trace: spansOfJobs(exporter, host.clock) } }),
      handlers: {
        traceSampler: () => ({ sampler: settings?.sampler ?? null }),
        spans: ({ texts }: { readonly texts: readonly string[] }) => {
          for (const text of texts) exporter?.addSpan(text);
          return {};
        },
      },
      counters: [
        {
          name: 'trace_spans_total',
          ...metrics.trace_spans_total,
          read: () => exporter?.counts ?? { exported: 0, dropped: 0 },
        },
      ],
      storedKinds: [storedTraces(exporter !== null)],
      stop: async () => exporter?.closeExporter(),
    };
  };
}

function storedTraces(areExported: boolean): StoredKind {
  return {
    kind: 'traces',
    content: 'times, model and tokens of jobs, without the client',
    ...{ place: areExported ? 'output' : 'nowhere', keptMs: null, until: 'as long as the collector keeps it' },
    ...{ readers: ['receiver'], export: null, deletion: null, variables: ['OTEL_EXPORTER_OTLP_ENDPOINT'] },
  };
}
