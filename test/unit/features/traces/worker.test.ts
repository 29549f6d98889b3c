import { createPart } from '../../../../src/features/traces/worker.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** Creates the part of a worker whose primary answers with this sampler. `sent` has the texts of spans. */
async function traced(sampler: object | null) {
  const sent: string[] = [];
  const primary = {
    call: async (name: string, { texts = [] }: { readonly texts?: readonly string[] }) => {
      sent.push(...texts);
      return name === 'traceSampler' ? { sampler } : {};
    },
  };
  return { part: await createPart({ primary: primary as never, clock: new FakeClock() }), sent };
}

describe('The traces of a worker', () => {
  it('send the spans that wait before the worker exits', async () => {
    const { part, sent } = await traced({ isParentBased: true, ratio: 1 });
    const req = { method: 'GET', headers: { traceparent }, httpVersion: '1.1', protocol: 'http' } as never;
    const trace = part.tracer?.beginTrace(req);
    if (trace == null) throw new Error('the request is not traced');
    part.tracer?.endTrace(trace, req, { route: '/version', requestId: 'r', job: null, error: null } as never, {
      ...{ path: '/version', statusCode: 200, durationMs: 1 },
    });
    expect(sent).toEqual([]);
    part.stop?.();
    expect(JSON.parse(sent.join())).toMatchObject({ name: 'GET /version', parentSpanId: 'b7ad6b7169203331' });
  });

  it('are absent if no spans are exported', async () => {
    const { part } = await traced(null);
    expect(part).toEqual({ routes: [] });
  });
});
