import { RelayError } from '../../../../src/shared/errors.js';
import type { Message } from '../../../../src/shared/job.js';
import { chained, chainStart } from '../../../../src/shared/text/chain.js';
import type { Reply } from '../../../../src/worker/http/exchange.js';
import { type RequestedJob, requestOf } from '../../../../src/worker/jobs/job-request.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const res = { locals: { requestId: 'mine', client: 'key ada' } } as unknown as Reply;
const plain: RequestedJob = { operation: 'ask', text: 'Hi', isEffortNeeded: true, stream: false };

function request(order: Partial<RequestedJob>, fault: string | null = null) {
  const primary = new FakePrimary({ schemaFault: { fault } });
  return { made: requestOf({ ...plain, ...order }, primary.asPrimary, res), primary };
}

describe('The job request of a route', () => {
  it('has only the requested options', async () => {
    expect(await request({}).made).toMatchObject({
      client: 'key ada',
      schema: null,
      history: [],
      chain: null,
      stop: [],
    });
  });

  it('has a schema that the primary has validated', async () => {
    const { made, primary } = request({ schema: { path: 'schema', value: { type: 'object' } } });
    expect((await made).schema).toBe('{"type":"object"}');
    expect(primary.calls).toEqual([
      { name: 'schemaFault', request: { schema: '{"type":"object"}', client: 'key ada' } },
    ]);
  });

  it('is rejected with an invalid schema, with its path in the request', async () => {
    const { made } = request({ schema: { path: 'format.schema', value: { type: 'object' } } }, 'it is odd');
    const fault = new RelayError('validation_error', 'format.schema: is not a JSON Schema: it is odd');
    await expect(made).rejects.toThrow(fault);
  });

  it('has a chain over all messages, if its caller sends the history', async () => {
    const history: Message[] = [
      { role: 'user', text: 'Hello' },
      { role: 'assistant', text: 'Hi' },
    ];
    const { chain } = await request({ history, text: 'And?', system: 'Be brief.' }).made;
    const before = history.reduce(chained, chainStart('Be brief.', null));
    expect(chain).toEqual({ before, asked: chained(before, { role: 'user', text: 'And?' }) });
  });

  it('has a chain from the first message on', async () => {
    const { chain } = await request({ history: [] }).made;
    expect(chain?.before).toBe(chainStart(null, null));
  });
});
