import type { CommandFeature } from '../../command/base/command.js';
import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints, keyOptions } from './shared.js';
import { courseVerb } from './verbs.js';

/** Courses: groups with an end whose members a teacher administers. */
export const courses = {
  ...emptyFeature,
  name: 'courses',
  needs: ['stores', 'usage', 'keys-api'],
  ...{ calls, endpoints, keyOptions },
  loadPrimary: async () => (await import('./primary.js')).createCourses,
  loadWorker: () => import('./worker.js'),
  commands: [courseVerb],
} satisfies PrimaryFeature & WorkerFeature<typeof calls> & CommandFeature;
