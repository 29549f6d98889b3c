import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { foreignPages } from './foreign-pages.js';
import type { calls } from './shared.js';

export async function createPart({ primary }: Pick<WorkerCore<typeof calls>, 'primary'>): Promise<WorkerPart> {
  const { allowed } = await primary.call('allowedOrigins', {});
  return { routes: [], foreignPages: foreignPages(allowed) };
}
