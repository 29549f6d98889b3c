import type { Door, WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { ollamaErrors } from './errors.js';
import { postOllamaChat, postOllamaGenerate } from './jobs.js';
import { getOllamaVersion, getRunningModels, getTags, noSuchOllamaPath, ollamaIsRunning, postShow } from './models.js';
import { port } from './shared.js';

export const ollamaDoor: Door = {
  errorFormOf: ({ path }) => (path === '/api' || path.startsWith('/api/') ? ollamaErrors : null),
  // A base URL for Ollama's clients may end in /api or in another API's /v1.
  findPath: (path) => {
    const [, below] = /^(?:v1\/+)?(?:api\/+)+([^/].*)$/.exec(path) ?? [];
    return below === undefined ? null : `/api/${below}`;
  },
  unknown: { below: '/api', answer: noSuchOllamaPath },
  port: { name: port.name, root: ollamaIsRunning },
};

/** The lists of models need no key, as in the other APIs. */
export function createPart({ guards, jobs }: WorkerCore): WorkerPart {
  const { mayAsk, mayCall, needsService, namesUser, capped, once } = guards;
  const { primary, bodies } = jobs;
  const beforeJob = [mayAsk, needsService, namesUser, capped, once];
  return {
    routes: [
      { route: '/api/tags', get: [getTags(primary)] },
      { route: '/api/ps', get: [getRunningModels(primary)] },
      { route: '/api/version', get: [getOllamaVersion] },
      { route: '/api/show', post: [mayCall, postShow(primary, bodies)] },
      { route: '/api/chat', post: [...beforeJob, postOllamaChat(jobs)] },
      { route: '/api/generate', post: [...beforeJob, postOllamaGenerate(jobs)] },
    ],
    door: ollamaDoor,
  };
}
