import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import { traceFields } from '../../primary/observe/observers.js';
import type { ClientText } from '../../shared/client.js';
import type { PassReason } from '../../shared/job.js';
import { FallbackRoutes } from './fallback-routes.js';
import { type FallbackValues, mayFallBackWith, metrics } from './shared.js';

export function createFallbacks({
  MODEL_API_FALLBACKS: rules,
  MODEL_API_FALLBACK_WAIT_SECONDS: waitMs,
}: FallbackValues): CreatePrimaryPart {
  return ({ host: { log }, router, clients }) => {
    const mayFallBack = (client: ClientText) => mayFallBackWith(clients.optionsOf(client).featureOptions);
    const routes = new FallbackRoutes(router, { rules, waitMs, mayFallBack });
    const counts = new MoveCounts();
    return {
      job: {
        checkModels: (request) => routes.checkModels(request),
        route: (...question) => routes.choose(...question),
        failed: (...failure) => routes.nextChoice(...failure),
        moved: ({ requestId, trace }, from, to, reason) => {
          const names = { from: from.cli.label, to: to.cli.label };
          counts.countMove(names.from, names.to, reason);
          const models = { from: from.label ?? names.from, to: to.label ?? names.to };
          log.info('job_fell_back', { request_id: requestId, ...traceFields(trace), ...models, reason });
        },
      },
      handlers: {},
      counters: [
        {
          name: 'fallbacks_total',
          ...metrics.fallbacks_total,
          read: () => counts.figures,
        },
      ],
    };
  };
}

/** Owns the numbers of moves, by the CLI before, the CLI after, and the reason. */
class MoveCounts {
  readonly figures: Record<string, Record<string, Record<string, number>>> = Object.create(null);

  countMove(from: string, to: string, reason: PassReason): void {
    this.figures[from] ??= Object.create(null) as Record<string, Record<string, number>>;
    this.figures[from][to] ??= {};
    const counts = this.figures[from][to];
    counts[reason] = (counts[reason] ?? 0) + 1;
  }
}
