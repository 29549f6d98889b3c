import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { RequestSpans } from './request-spans.js';
import type { calls } from './shared.js';

export async function createPart({
  primary,
  clock,
}: Pick<WorkerCore<typeof calls>, 'primary' | 'clock'>): Promise<WorkerPart> {
  const { sampler } = await primary.call('traceSampler', {});
  if (sampler === null) return { routes: [] };
  const spans = new RequestSpans(sampler, primary, clock);
  return { routes: [], tracer: spans, stop: () => spans.sendSpans() };
}
