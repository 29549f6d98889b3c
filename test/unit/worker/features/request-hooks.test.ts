import { z } from 'zod';
import { askRequest } from '../../../../src/shared/api/ask.js';
import { withFields } from '../../../../src/shared/features/feature.js';
import type { WorkerPart } from '../../../../src/worker/features/feature.js';
import { RequestHooks } from '../../../../src/worker/features/request-hooks.js';
import type { JobOfRequest } from '../../../../src/worker/jobs/admission.js';

const job: JobOfRequest = { req: { headers: {}, headersDistinct: {} }, fields: { note: 'a' }, isBackground: true };

function partWith(route: `/${string}`, admitJob: Required<WorkerPart>['admitJob']): WorkerPart {
  return { routes: [{ route, get: [] }], admitJob };
}

describe('The hooks of features for requests', () => {
  it('add to the form of a job what each feature returns', () => {
    const hooks = new RequestHooks([partWith('/a', ({ fields }) => fields), partWith('/b', () => ({ other: 1 }))], {});
    expect(hooks.admitJob(job)).toEqual({ note: 'a', other: 1 });
    expect(hooks.routes.map(({ route }) => route)).toEqual(['/a', '/b']);
  });

  it('refuse a request that one feature refuses', () => {
    const refuse = () => {
      throw new Error('no');
    };
    const hooks = new RequestHooks([partWith('/a', () => ({})), partWith('/b', refuse)], {});
    expect(() => hooks.admitJob(job)).toThrow('no');
  });
});

it('A body has the fields of features only if there are any', () => {
  const body = { prompt: 'Hi', note: 'a' };
  expect(withFields(askRequest, { note: z.string().optional() }).parse(body)).toEqual(body);
  expect(withFields(askRequest, {}).safeParse(body).success).toBe(false);
});
