import type { Request } from 'express';
import { createPart } from '../../../../src/features/files/worker.js';
import type { WorkerCore } from '../../../../src/worker/features/feature.js';
import type { AsyncHandler, Reply } from '../../../../src/worker/http/exchange.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const names = ['mayAsk', 'mayCall', 'needsService', 'namesUser', 'capped', 'once'];
const guards = Object.fromEntries(names.map((name) => [name, name]));
const file = { id: 'file-1', name: 'a.txt', mediaType: 'text/plain', bytes: 1, createdAt: 0, expiresAt: 0 };
const primary = new FakePrimary({ file });
const { routes, door } = createPart({ primary, guards, jobs: { bodies: {} } } as unknown as WorkerCore<never>);

it('An upload has the checks of a job, and other requests only those of a client', () => {
  const stepsOf = routes.flatMap(({ route, get = [], post = [], delete: removal = [] }) => [
    ...[get, removal].filter((steps) => steps.length > 0).map((steps) => [route, steps.slice(0, -1)]),
    ...(post.length === 0 ? [] : [[`POST ${route}`, post.slice(0, -1)]]),
  ]);
  expect(Object.fromEntries(stepsOf)).toEqual({
    'POST /v1/files': ['mayAsk', 'needsService', 'namesUser', 'capped', 'once'],
    '/v1/files': ['mayCall', 'namesUser'],
    '/v1/files/{file_id}': ['mayCall', 'namesUser'],
    '/v1/files/{file_id}/content': ['mayCall', 'namesUser'],
  });
});

it('The paths of files are found with each base URL', () => {
  const find = (path: string) => door?.findPath?.(path, { headers: {} }) ?? null;
  expect(['files', 'v1/files/file-1', 'v1/v1/files'].map(find)).toEqual(['/v1/files', '/v1/files/file-1', '/v1/files']);
  expect([find('filesystem'), find('chat')]).toEqual([null, null]);
});

it('The body of a file has the form of the API that the request is for', async () => {
  const steps = routes.find(({ route }) => route === '/v1/files/{file_id}')?.get ?? [];
  const read = steps.at(-1) as AsyncHandler;
  const bodyFor = async (headers: object) => {
    let body = '';
    const res = { locals: { client: 'key ada' }, set: () => {}, setHeader: () => {}, writeHead: () => res };
    Object.assign(res, {
      end: (text: string) => (body = text),
      type: () => res,
      send: (text: string) => (body = text),
    });
    await read({ headers, params: { file_id: 'file-1' } } as unknown as Request, res as unknown as Reply, () => {});
    return JSON.parse(body) as Record<string, unknown>;
  };
  expect(await bodyFor({})).toMatchObject({ object: 'file' });
  expect(await bodyFor({ 'anthropic-version': '2023-06-01' })).toMatchObject({ type: 'file' });
});
