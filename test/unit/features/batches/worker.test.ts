import { createPart } from '../../../../src/features/batches/worker.js';
import type { WorkerCore } from '../../../../src/worker/features/feature.js';

const names = ['mayAsk', 'mayCall', 'needsService', 'namesUser', 'capped', 'once'];
const guards = Object.fromEntries(names.map((name) => [name, name]));
const { routes, handlers = {} } = createPart({ guards, jobs: { bodies: {} } } as unknown as WorkerCore<never>);

it('Only requests that create batches have the checks of a job', () => {
  const checksOf = (method: 'get' | 'post' | 'delete') =>
    Object.fromEntries(
      routes.flatMap(({ route, [method]: steps }) => (steps === undefined ? [] : [[route, steps.slice(0, -1)]])),
    );
  const beforeJob = ['mayAsk', 'needsService', 'namesUser', 'capped', 'once'];
  const mayCall = ['mayCall', 'namesUser'];
  expect(checksOf('post')).toEqual({
    '/v1/messages/batches': beforeJob,
    '/v1/messages/batches/{batch_id}/cancel': mayCall,
    '/v1/batches': beforeJob,
    '/v1/batches/{batch_id}/cancel': mayCall,
  });
  const others = Object.values({ ...checksOf('get'), ...checksOf('delete') });
  expect(others.every((each) => `${each}` === `${mayCall}`)).toBe(true);
});

it('A worker answers the calls about lines', () => {
  expect(Object.keys(handlers)).toEqual(['submitLine', 'writeLine', 'endLines']);
});
