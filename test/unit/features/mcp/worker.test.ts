import { createPart } from '../../../../src/features/mcp/worker.js';
import type { WorkerCore } from '../../../../src/worker/features/feature.js';

const names = ['mayAsk', 'namesUser', 'once', 'notFromJob', 'needsService', 'capped'];
const guards = Object.fromEntries(names.map((name) => [name, name]));
const { routes, door } = createPart({ guards, jobs: {} } as unknown as WorkerCore);

describe('The route of the Model Context Protocol', () => {
  it('checks who sends a message before it is read, and what a job needs only after that', () => {
    const [{ post = [], ...rest } = { route: '/' }] = routes;
    expect(rest).toEqual({ route: '/mcp', paths: ['/mcp', '/mcp/'] });
    expect(post.slice(0, -1)).toEqual(['mayAsk', 'namesUser', 'once']);
  });

  it('has errors in the form of JSON-RPC, at its paths only', () => {
    const formAt = (path: string) => door?.errorFormOf({ path, headers: {} }) ?? null;
    expect([formAt('/mcp'), formAt('/mcp/')]).toEqual([expect.any(Function), expect.any(Function)]);
    expect([formAt('/mcp/x'), formAt('/ask'), formAt('/')]).toEqual([null, null, null]);
  });
});
