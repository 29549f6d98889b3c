import { sdkRequest } from '../../../../src/features/doors/sdk-request.js';

const plain: Parameters<typeof sdkRequest>[0] = {
  body: {},
  known: new Set(['model']),
  conversation: { question: { role: 'user', text: 'Hi' } },
  tools: { offer: undefined, forms: {}, dropped: [] },
  sampling: {},
  job: { stream: false },
  wishFields: {},
  ignored: [],
  effortField: null,
  imageField: null,
  documentField: null,
  schemaWish: null,
};
const search = { path: 'tools.0' };

describe('A request of an SDK', () => {
  it('names the default model if the client names none', () => {
    const { job, model } = sdkRequest({ ...plain, body: { model: '' } });
    expect([job.model, model]).toEqual([undefined, 'default']);
  });

  it('reports unknown fields, then dropped tools, and at most forty in all', () => {
    const tools = { ...plain.tools, dropped: ['computer'] };
    const { ignored } = sdkRequest({ ...plain, body: { model: 'opus', odd: 1 }, tools, ignored: Array(50).fill('n') });
    expect(ignored.slice(0, 3)).toEqual(['odd', 'tools.computer', 'n']);
    expect(ignored).toHaveLength(40);
  });

  it('is refused with both a web search and a schema', () => {
    const job = { ...plain.job, schema: { path: 'format', value: {} } };
    const request = () => sdkRequest({ ...plain, job, tools: { ...plain.tools, search } });
    expect(request).toThrow('tools.0: cannot be used with a schema of the answer');
  });
});
