import { chained, chainStart } from '../../../src/shared/chain.js';
import type { JobRequest, Message } from '../../../src/shared/job.js';
import type { AsyncHandler } from '../../../src/worker/http/exchange.js';
import { type JobOrder, requestOf } from '../../../src/worker/jobs/job-order.js';
import { serveWith } from '../../support/express-server.js';
import { FakePrimary } from '../../support/fake-primary.js';

const order: JobOrder = { operation: 'ask', text: 'And?', isEffortNeeded: true, stream: false };
const history: readonly Message[] = [
  { role: 'user', text: 'Hello' },
  { role: 'assistant', text: 'Hi' },
];

/** The job that a request orders, or the body of its refusal. */
async function ordered(differences: Partial<JobOrder>, fault: string | null = null) {
  const primary = new FakePrimary({ schemaFault: { fault } });
  const handler: AsyncHandler = async (_req, res) => {
    res.json(await requestOf({ ...order, ...differences }, primary.asPrimary, res));
  };
  await using server = await serveWith([handler]);
  const { body, status } = await server.get('X-Request-Id: mine');
  return { status, job: body as unknown as JobRequest, body, calls: primary.calls };
}

describe('the job that a request orders', () => {
  it('has no part that was not asked for', async () => {
    const { job, calls } = await ordered({});
    expect(job).toMatchObject({ text: 'And?', images: [], stop: [], history: [], requestId: 'mine', client: '' });
    expect(job).toMatchObject({ system: null, model: null, schema: null, effort: null, chain: null });
    expect(calls).toEqual([]);
  });

  it('has a chain where its caller keeps the conversation: before its text, and with it', async () => {
    const { job } = await ordered({ history, system: 'Be brief.' });
    const before = history.reduce(chained, chainStart('Be brief.', null));
    expect(job.chain).toEqual({ before, asked: chained(before, { role: 'user', text: 'And?' }) });
    expect(job.history).toEqual(history);
  });

  it('has its schema as JSON, when that was checked', async () => {
    const value = { type: 'object', properties: {} };
    const { job, calls } = await ordered({ schema: { path: 'schema', value } });
    expect(job.schema).toBe(JSON.stringify(value));
    expect(calls).toEqual([{ name: 'schemaFault', request: { schema: JSON.stringify(value) } }]);
  });

  it.each<[string, Record<string, unknown>, string | null, string]>([
    ['that is none', { type: 'object' }, 'its type is odd', 'format.schema: is not a JSON Schema: its type is odd'],
    ['without an object at its root', { type: 'array' }, null, 'format.schema: must have an object at its root'],
    ['that is too long', { type: 'object', title: 'x'.repeat(70_000) }, null, 'format.schema: must be 65536 bytes'],
  ])('is refused with a schema %s', async (_, value, fault, message) => {
    const { status, body } = await ordered({ schema: { path: 'format.schema', value } }, fault);
    expect([status, body.error]).toEqual([400, 'validation_error']);
    expect(body.message).toContain(message);
  });
});
