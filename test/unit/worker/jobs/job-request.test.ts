import { cliError, invalid, RelayError } from '../../../../src/shared/errors.js';
import type { Message } from '../../../../src/shared/job.js';
import { chained, chainStart } from '../../../../src/shared/text/chain.js';
import type { Reply } from '../../../../src/worker/http/exchange.js';
import {
  ignoredFields,
  inWordsOf,
  noteDroppedTools,
  type RequestedJob,
  requestOf,
} from '../../../../src/worker/jobs/job-request.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { documentInspector } from '../../../support/jobs/inspected-documents.js';

const res = { locals: { requestId: 'mine', client: 'key ada', groups: [] } } as unknown as Reply;
const plain: RequestedJob = { operation: 'ask', text: 'Hi', isEffortNeeded: true, stream: false };

function request(order: Partial<RequestedJob>, fault: string | null = null, noFallback?: string) {
  const primary = new FakePrimary({ schemaFault: { fault } });
  const reply = { ...res, req: { get: () => noFallback } } as unknown as Reply;
  return {
    made: requestOf({ ...plain, ...order }, { primary: primary.asPrimary, documents: documentInspector() }, reply),
    primary,
  };
}

describe('The job request of a route', () => {
  it('has only the requested options', async () => {
    const made = { client: 'key ada', schema: null, history: [], chain: null, stop: [] };
    expect(await request({}).made).toMatchObject(made);
  });

  it.each([
    ['opus', undefined, 'opus', undefined],
    ['opus,codex/gpt-5,x', undefined, 'opus', ['codex/gpt-5', 'x']],
    ['opus,codex', '1', 'opus', []],
    [undefined, '1', null, []],
    ['opus', '0', 'opus', undefined],
  ])('has the models %s with X-No-Fallback: %s', async (model, header, first, fallbacks) => {
    const made = await request({ model }, null, header).made;
    expect([made.model, made.fallbacks]).toEqual([first, fallbacks]);
  });

  it('is rejected with an unknown X-No-Fallback', async () => {
    await expect(request({}, null, 'true').made).rejects.toThrow('X-No-Fallback: must be 1 or 0');
  });

  it('has a schema that the primary has validated', async () => {
    const { made, primary } = request({ schema: { path: 'schema', value: { type: 'object' } } });
    expect((await made).schema).toBe('{"type":"object"}');
    const asked = { schema: '{"type":"object"}', client: 'key ada' };
    expect(primary.calls).toEqual([{ name: 'schemaFault', request: asked }]);
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

  it('has the chains before the last 32 earlier user messages, the longest first', async () => {
    const history = Array.from({ length: 80 }, (_, index): Message => {
      return { role: index % 2 === 0 ? 'user' : 'assistant', text: `${index}` };
    });
    const { chain } = await request({ history, text: 'And?' }).made;
    const beginnings = chain?.beginnings ?? [];
    expect(beginnings.map(({ messageCount }) => messageCount)).toEqual(
      Array.from({ length: 32 }, (_, index) => 78 - 2 * index),
    );
    expect(beginnings[0]?.id).toBe(history.slice(0, 78).reduce(chained, chainStart(null, null)));
  });

  it('has a chain from the first message on', async () => {
    const { chain } = await request({ history: [] }).made;
    expect(chain?.before).toBe(chainStart(null, null));
  });
});

describe('The ignored fields', () => {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`f${index}`, index]));

  it('are at most forty, and an invalid name is not shown', () => {
    expect(ignoredFields(many, new Set())).toHaveLength(40);
    const odd = { a: 1, b: null, 'x\r\nSet-Cookie: y': 1, c: 2 };
    expect(ignoredFields(odd, new Set(['c']))).toEqual(['a', '(odd name)']);
  });
});

describe('Omitted tools', () => {
  function noted(droppedTools: readonly string[], route = '/v1/messages', toolsIgnored: object = {}) {
    const primary = new FakePrimary({ toolsIgnored });
    const res = { locals: { client: 'key ada', route } } as unknown as Reply;
    noteDroppedTools(primary.asPrimary, res, { droppedTools });
    return primary.calls;
  }

  it('are reported to the primary, with the client and the API', () => {
    const call = { name: 'toolsIgnored', request: { client: 'key ada', route: '/v1/messages' } };
    expect(noted(['web_search'])).toEqual([call]);
    expect(noted([])).toEqual([]);
  });

  it('cause no error if the primary has gone', async () => {
    expect(() => noted(['web_search'], '/v1/responses', new Error('gone'))).not.toThrow();
    await new Promise(setImmediate); // an unhandled rejection would end the test here
  });
});

describe('A failure of a request to an SDK endpoint', () => {
  const words = { imageField: 'messages.2.content.1', documentField: null, schemaWish: 'FORMAT' };
  const plain = { imageField: null, documentField: null, schemaWish: null };

  it('names the field of the image in the request', () => {
    const refusal = invalid('images', 'the model CLI of this service takes none');
    const said = 'the model CLI of this service does not accept images';
    expect(inWordsOf(words, refusal)).toEqual(invalid('messages.2.content.1', said));
    expect(inWordsOf(plain, refusal)).toBe(refusal);
  });

  it('explains how to send a schema if an object was requested without one', () => {
    const failure = cliError('schema_mismatch', 'the answer does not fit', { stderr: 'x' });
    const message = expect.stringMatching(/^the answer does not fit\. json_object does not .* FORMAT$/);
    const explained = { code: 'cli_error', reason: 'schema_mismatch', stderr: 'x', message };
    expect(inWordsOf(words, failure)).toMatchObject(explained);
    expect(inWordsOf(plain, failure)).toBe(failure);
  });

  it.each([invalid('model', 'x'), cliError('quota', 'x'), new Error('x'), 'x'])(
    'is otherwise unchanged: %s',
    (failure) => {
      expect(inWordsOf(words, failure)).toBe(failure);
    },
  );
});
