import { createPart, ollamaDoor } from '../../../../src/features/ollama/worker.js';
import type { WorkerCore } from '../../../../src/worker/features/feature.js';

const names = ['mayAsk', 'mayCall', 'needsService', 'namesUser', 'capped', 'once'];
const guards = Object.fromEntries(names.map((name) => [name, name]));
const { routes } = createPart({ guards, jobs: {} } as unknown as WorkerCore);

describe('The paths of Ollama’s API', () => {
  it.each([
    ['api/tags', '/api/tags'],
    ['api/api/tags', '/api/tags'],
    ['v1/api/chat', '/api/chat'],
    ['v1//api//chat', '/api/chat'],
    ['api', null],
    ['v1/chat/completions', null],
    ['ask', null],
  ])('are found in the path from a base URL: %s', (path, found) => {
    expect(ollamaDoor.findPath?.(path, { headers: {} })).toBe(found);
  });

  it('have errors in the form of this API, and no others have', () => {
    const formAt = (path: string) => ollamaDoor.errorFormOf({ path, headers: {} });
    expect([formAt('/api'), formAt('/api/tags')]).toEqual([expect.any(Function), expect.any(Function)]);
    expect([formAt('/apis'), formAt('/ask'), formAt('/')]).toEqual([null, null, null]);
  });
});

it('Only requests that run a model have the checks of a job, and lists of models need no key', () => {
  const checksOf = Object.fromEntries(
    routes.map(({ route, get = [], post = [] }) => [route, [...get, ...post].slice(0, -1)]),
  );
  const beforeJob = ['mayAsk', 'needsService', 'namesUser', 'capped', 'once'];
  expect(checksOf).toEqual({
    ...{ '/api/tags': [], '/api/ps': [], '/api/version': [], '/api/show': ['mayCall'] },
    ...{ '/api/chat': beforeJob, '/api/generate': beforeJob },
  });
});
