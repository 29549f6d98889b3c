import { type CliReason, RelayError } from '../../../../src/shared/errors.js';
import type { FailedOutcome, JobDone, JobEvent, JobRequest } from '../../../../src/shared/job.js';
import { asHolder } from '../../../support/doors/express-server.js';
import { always, begun, messageEvents, type SdkDoor, sdkDoor } from '../../../support/doors/sdk-door.js';
import { assistant, png, textPart, user } from '../../../support/doors/sdk-messages.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';

const hello = { model: 'eliza', max_tokens: 100, messages: [user('Hi')] };
const ofCity = { type: 'object', properties: { city: { type: 'string' } } };
const calling = { tools: [{ name: 'weather', input_schema: ofCity }], tool_choice: { type: 'any' } };
const mine = { 'x-request-id': 'mine' };
const used = { inputTokens: 100, outputTokens: 5, costUsd: null, cacheReadTokens: 60, cacheWriteTokens: 30 };
const usage = { input_tokens: 10, cache_creation_input_tokens: 30, cache_read_input_tokens: 60, output_tokens: 5 };
const nothing = { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
const message = { id: 'msg_mine', type: 'message', role: 'assistant', model: 'eliza', container: null };
const end = { stop_reason: 'end_turn', stop_sequence: null, stop_details: null };
const toolUse = { ...end, stop_reason: 'tool_use' };
const refusal = {
  ...{ ...end, stop_reason: 'refusal' },
  stop_details: { type: 'refusal', category: null, explanation: null },
};

function says(...texts: readonly string[]): JobEvent[] {
  return texts.map((text) => ({ type: 'text-delta', text }));
}

const grass = { type: 'char_location', cited_text: 'The grass is green.', document_index: 0 };
const sky = { ...grass, document_index: 1 };

function cites(passage: Record<string, unknown> | null): JobEvent {
  return { type: 'passage', passage };
}

function failing(outcome: FailedOutcome, reason?: CliReason, details?: [{ path: string; message: string }]): JobEvent {
  return jobFailed(outcome, { failure: { code: outcome, message: 'it failed', reason, details } });
}

const made = { id: 'toolu_1', name: 'weather', input: '{"city":"Bonn"}' };
const ended = (differences: Partial<JobDone>) => jobDone({ model: 'eliza', usage: used, ...differences });
const done = ended({});
/** Events of a model that starts a call and continues it in two pieces. */
const begins: JobEvent[] = [
  { type: 'call-start', id: made.id, name: made.name },
  { type: 'call-delta', text: '{"city"' },
  { type: 'call-delta', text: ':"Bonn"}' },
];
const refused = failing('cli_error', 'refused');
const thinking = { thinking: { type: 'adaptive' } };
/** Events with a signed thought, text, an encrypted thought, and text again. */
const thinks: JobEvent[] = [
  { type: 'thought-delta', text: 'H' },
  { type: 'thought-delta', text: 'm' },
  { type: 'thought-end', signature: 'proof' },
  ...says('Good '),
  { type: 'thought-end', redacted: 'sealed' },
  ...says('day'),
  ended({
    thoughts: [
      { text: 'Hm', signature: 'proof', at: 0, calls: 0 },
      { text: '', redacted: 'sealed', at: 5, calls: 0 },
    ],
  }),
];

function open(...events: readonly JobEvent[]): Promise<SdkDoor> {
  return sdkDoor(always(...events), { bodyLimitBytes: 100_000 });
}

/** A part of a message: as a whole, and as the events of a stream. */
interface Block {
  readonly whole: object;
  readonly start: object;
  readonly deltas: readonly object[];
}

function textBlock(...pieces: readonly string[]): Block {
  const deltas = pieces.map((text) => ({ type: 'text_delta', text }));
  return { whole: { type: 'text', text: pieces.join('') }, start: { type: 'text', text: '' }, deltas };
}

function citing({ whole, start, deltas }: Block, ...citations: readonly object[]): Block {
  const added = citations.map((citation) => ({ type: 'citations_delta', citation }));
  return { whole: { ...whole, citations }, start, deltas: [...deltas, ...added] };
}

function thoughtBlock(signature: string, ...pieces: readonly string[]): Block {
  const thought = (thinking: string, signature: string) => ({ type: 'thinking', thinking, signature });
  const deltas = [
    ...pieces.map((thinking) => ({ type: 'thinking_delta', thinking })),
    { type: 'signature_delta', signature },
  ];
  return { whole: thought(pieces.join(''), signature), start: thought('', ''), deltas };
}

function sealedBlock(data: string): Block {
  const block = { type: 'redacted_thinking', data };
  return { whole: block, start: block, deltas: [] };
}

function callBlock(id: string, ...pieces: readonly string[]): Block {
  const call = (input: object) => ({ type: 'tool_use', id, name: 'weather', input, caller: { type: 'direct' } });
  const deltas = pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json }));
  return { whole: call(JSON.parse(pieces.join('') || '{}')), start: call({}), deltas };
}

/** Returns the events of these blocks. */
function blockEvents(blocks: readonly Block[]): unknown[] {
  const event = (type: string, fields: object) => [type, { type, ...fields }];
  return blocks.flatMap(({ start, deltas }, index) => [
    event('content_block_start', { index, content_block: start }),
    ...deltas.map((delta) => event('content_block_delta', { index, delta })),
    event('content_block_stop', { index }),
  ]);
}

/** First event of a stream, with the number of prompt tokens before the model CLI reports it. */
const started = [
  'message_start',
  {
    type: 'message_start',
    message: {
      ...message,
      content: [],
      ...end,
      stop_reason: null,
      usage: { ...nothing, input_tokens: expect.any(Number) },
    },
  },
];

const callOf = (id: string, input: object = {}) => ({ type: 'tool_use', id, name: 'weather', input });
const resultOf = (id: string, content: unknown) => ({ type: 'tool_result', tool_use_id: id, content });

describe('A message', () => {
  const cityBlock = callBlock('toolu_1', '{"city"', ':"Bonn"}');
  const second: JobEvent = { type: 'call-start', id: 'b', name: 'weather' };

  it.each<[string, object, JobEvent[], Block[], object]>([
    ['text', {}, [...says('Good ', 'day'), done], [textBlock('Good ', 'day')], end],
    ['no text', {}, [done], [textBlock()], end],
    [
      'thoughts and text, each at its place',
      thinking,
      thinks,
      [thoughtBlock('proof', 'H', 'm'), textBlock('Good '), sealedBlock('sealed'), textBlock('day')],
      end,
    ],
    [
      'text that cites documents',
      {},
      [
        ...[cites(null), ...says('I read '), cites(null), ...says('it is ', 'green')],
        ...[cites(grass), cites(sky), cites(null), ...says('.')],
        ended({
          blocks: [
            { at: 0, passages: [] },
            { at: 7, passages: [grass, sky] },
            { at: 18, passages: [] },
          ],
        }),
      ],
      [textBlock('I read '), citing(textBlock('it is ', 'green'), grass, sky), textBlock('.')],
      end,
    ],
    [
      'a thought and a call',
      { ...calling, ...thinking },
      [
        { type: 'thought-delta', text: 'Hm' },
        { type: 'thought-end' },
        ...begins,
        ended({ calls: [made], thoughts: [{ text: 'Hm', at: 0, calls: 0 }] }),
      ],
      [thoughtBlock('', 'Hm'), cityBlock],
      toolUse,
    ],
    [
      'text before a stop sequence',
      { stop_sequences: ['END'] },
      [...says('Good'), ended({ stopSequence: 'END' })],
      [textBlock('Good')],
      { ...end, stop_reason: 'stop_sequence', stop_sequence: 'END' },
    ],
    [
      'a call of a tool, with its input as a value',
      calling,
      [...begins, ended({ calls: [made] })],
      [cityBlock],
      toolUse,
    ],
    [
      'text, and several calls behind it',
      calling,
      [...says('I see.'), ...begins, second, ended({ calls: [made, { ...made, id: 'b', input: '' }] })],
      [textBlock('I see.'), cityBlock, callBlock('b')],
      toolUse,
    ],
    ['text though there are tools', calling, [...says('{"city":"Bonn"}'), done], [textBlock('{"city":"Bonn"}')], end],
    [
      'text that has as many tokens as were wanted',
      {},
      [...says('Good'), ended({ isCutShort: true })],
      [textBlock('Good')],
      { ...end, stop_reason: 'max_tokens' },
    ],
    ['a refusal', {}, [...says('I'), refused], [textBlock('I')], refusal],
    ['a refused call of a tool', calling, [refused], [], refusal],
  ])('is %s, as one body and as named events', async (_what, fields, events, blocks, ending) => {
    await using door = await open(...begun, ...events);
    const used = ending === refusal ? nothing : usage;
    const { status, headers, body } = await door.post('/v1/messages', { ...hello, ...fields }, mine);
    const content = blocks.map(({ whole }) => whole);
    expect([status, body]).toEqual([200, { ...message, content, ...ending, usage: used }]);
    expect([headers.get('request-id'), headers.get('x-session')]).toEqual(['mine', 'replay']);
    const stream = await door.post('/v1/messages', { ...hello, ...fields, stream: true }, mine);
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    expect([stream.headers.get('request-id'), stream.headers.get('x-ignored-parameters')]).toEqual(['mine', null]);
    expect(messageEvents(stream.text)).toEqual([
      ...[started, ...blockEvents(blocks)],
      ['message_delta', { type: 'message_delta', delta: { ...ending, container: null }, usage: used }],
      ['message_stop', { type: 'message_stop' }],
    ]);
  });

  it('has a call without input if the input of the model is no JSON', async () => {
    await using door = await open(...begun, ended({ calls: [{ ...made, input: '{"city' }] }));
    const { body } = await door.post('/v1/messages', { ...hello, ...calling }, mine);
    expect(body).toEqual({ ...message, content: [callBlock('toolu_1').whole], ...toolUse, usage });
  });

  it('lists the ignored fields, including the effort if the model does not support it', async () => {
    await using door = await open({ type: 'job-admitted', session: null, ignoresEffort: true }, done);
    const { headers } = await door.post('/v1/messages', { ...hello, top_k: 5, output_config: { effort: 'low' } });
    expect(headers.get('x-ignored-parameters')).toBe('top_k, output_config.effort');
    expect(door.job).toMatchObject({ operation: 'ask', effort: 'low', isEffortNeeded: false, isStreamed: false });
  });

  it('lists the options that the model does not support', async () => {
    const ignores = ['maxTokens', 'temperature', 'isParallel'] as const;
    await using door = await open({ type: 'job-admitted', session: null, ignoresEffort: false, ignores }, done);
    const choice = { type: 'auto', disable_parallel_tool_use: true };
    const { headers } = await door.post('/v1/messages', { ...hello, ...calling, tool_choice: choice, temperature: 1 });
    expect(headers.get('x-ignored-parameters')).toBe('max_tokens, temperature, tool_choice.disable_parallel_tool_use');
  });

  it('passes its tools, options and results of calls to the job', async () => {
    await using door = await open(...begun, done);
    const messages = [...hello.messages, assistant([callOf('1')]), user([resultOf('1', 'windy')])];
    await door.post('/v1/messages', { ...hello, ...calling, messages, temperature: 0.5 });
    expect(door.job).toMatchObject({
      text: '',
      results: [{ id: '1', text: 'windy', isError: false }],
      history: [
        { role: 'user', text: 'Hi' },
        { role: 'assistant', text: '', calls: [{ id: '1', name: 'weather', input: '{}' }] },
      ],
      schema: null,
      offer: {
        tools: [{ name: 'weather', description: '', schema: JSON.stringify(ofCity) }],
        choice: 'required',
        isParallel: true,
      },
      sampling: { maxTokens: 100, temperature: 0.5 },
    });
  });

  it('has tokens counted by the tokenizer if the model reports none', async () => {
    await using door = await open(...begun, jobDone({ estimate: { inputTokens: 3, outputTokens: 2 } }));
    expect((await door.post('/v1/messages', hello)).body.usage).toEqual({
      ...nothing,
      input_tokens: 3,
      output_tokens: 2,
    });
  });
});

describe('A streamed message', () => {
  it('starts with an estimate of the prompt tokens, and ends with the tokens that the model CLI reports', async () => {
    const tokensOf = async (body: object) => {
      await using door = await open(...begun, ...says('Hi'), done);
      const events = messageEvents((await door.post('/v1/messages', { ...hello, ...body, stream: true })).text);
      return (events[0] as [string, { message: { usage: { input_tokens: number } } }])[1].message.usage.input_tokens;
    };
    const ofHistory = [user('x'.repeat(4000)), assistant('y'.repeat(400)), user('z'.repeat(40))];
    expect(await tokensOf({})).toBe(1);
    expect(await tokensOf({ system: 'x'.repeat(4000) })).toBe(1001);
    expect(await tokensOf({ messages: ofHistory })).toBe(1110);
    expect(await tokensOf(calling)).toBeGreaterThan(10);
  });

  it('ends with a failure in its midst', async () => {
    await using door = await open(...begun, ...says('Good'), failing('cli_error', 'overloaded'));
    const { text } = await door.post('/v1/messages', { ...hello, stream: true }, mine);
    const error = { type: 'overloaded_error', message: 'it failed' };
    expect(messageEvents(text)).toEqual([
      ...[started, ...blockEvents([textBlock('Good')]).slice(0, -1)],
      ['error', { type: 'error', error, request_id: 'mine' }],
    ]);
  });

  it('starts when the job is admitted, and sends the queue position as a comment', async () => {
    const [admitted, start] = begun as [JobEvent, JobEvent];
    await using door = await open(admitted, { type: 'job-queued', position: 3, reason: 'slot' }, start, done);
    const { text } = await door.post('/v1/messages', { ...hello, stream: true }, mine);
    expect(messageEvents(text).slice(0, 3)).toEqual([': queued 3', started, blockEvents([textBlock()])[0]]);
  });

  it('is an ordinary error response if the job was refused', async () => {
    const full = new RelayError('concurrency_limited', 'full', { retryAfterSeconds: 9 });
    await using door = await sdkDoor(refusing(full));
    const { status, headers, body } = await door.post('/v1/messages', { ...hello, stream: true });
    expect([status, headers.get('retry-after'), headers.get('x-should-retry')]).toEqual([429, '9', null]);
    expect(body).toMatchObject({ type: 'error', error: { type: 'rate_limit_error', message: 'full' } });
  });
});

describe('A failure', () => {
  const model: [{ path: string; message: string }] = [{ path: 'model', message: 'must be one of a' }];

  it.each<[FailedOutcome, CliReason | undefined, number, string]>([
    ['cli_error', 'overloaded', 529, 'overloaded_error'],
    ['cli_error', 'quota', 429, 'rate_limit_error'],
    ['cli_error', 'prompt_too_long', 400, 'invalid_request_error'],
    ['cli_error', 'model_unknown', 404, 'not_found_error'],
    ['cli_error', 'auth', 500, 'api_error'],
    ['cli_error', 'schema_mismatch', 500, 'api_error'],
    ['spawn_error', undefined, 500, 'api_error'],
    ['internal_error', undefined, 500, 'api_error'],
    ['timeout', undefined, 504, 'timeout_error'],
    ['queue_timeout', undefined, 504, 'timeout_error'],
    ['shutting_down', undefined, 503, 'api_error'],
    ['store_unavailable', undefined, 503, 'api_error'],
  ])('%s (%s) is %i %s, with no retry once the model has started', async (outcome, reason, status, type) => {
    await using door = await open(...begun, failing(outcome, reason));
    const answer = await door.post('/v1/messages', hello, mine);
    const error = { type: 'error', error: { type, message: 'it failed' }, request_id: 'mine' };
    expect([answer.status, answer.body]).toEqual([status, error]);
    expect([answer.headers.get('request-id'), answer.headers.get('x-should-retry')]).toEqual(['mine', 'false']);
  });

  it.each<[RelayError, number, string]>([
    [new RelayError('validation_error', 'model: no', { details: model }), 404, 'not_found_error'],
    [new RelayError('validation_error', 'no'), 400, 'invalid_request_error'],
    [new RelayError('unauthorized', 'no'), 401, 'authentication_error'],
    [new RelayError('forbidden', 'no'), 403, 'permission_error'],
    [new RelayError('rate_limited', 'no', { retryAfterSeconds: 9 }), 429, 'rate_limit_error'],
    [new RelayError('shutting_down', 'no', { retryAfterSeconds: 9 }), 503, 'api_error'],
  ])('may be retried if the model has not started: %s', async (refusal, status, type) => {
    await using door = await sdkDoor(refusing(refusal));
    const { headers, ...answer } = await door.post('/v1/messages', hello);
    expect([answer.status, answer.body]).toMatchObject([status, { type: 'error', error: { type } }]);
    const retryAfter = refusal.retryAfterSeconds === undefined ? null : '9';
    expect([headers.get('retry-after'), headers.get('x-should-retry')]).toEqual([retryAfter, null]);
  });

  const types = { 400: 'invalid_request_error', 404: 'not_found_error', 413: 'request_too_large' };
  const fetchTool = { type: 'web_fetch_20250910', name: 'web_fetch' };
  const oddModel =
    'model: must be a model name: letters, digits and . _ : / @ [ ] -, or up to 8 of them separated by commas';
  const onServers = "tools: must have a tool of the client: web_fetch_20250910 can only run on the provider's servers";
  const tooLarge = 'the body is larger than 100000 bytes (MODEL_API_BODY_LIMIT)';

  it.each<[string, object | string, keyof typeof types, string]>([
    ['what is no JSON', '{', 400, 'body: must be valid JSON'],
    ['no name of a model', { model: 5 }, 400, 'model: must be a string'],
    ['what can be no model', { ...hello, model: '-x' }, 404, oddModel],
    ['no messages', { model: 'eliza' }, 400, 'messages: must be sent'],
    ['too much', { ...hello, system: 'x'.repeat(100_000) }, 413, tooLarge],
    ['tools of servers alone', { ...hello, tools: [fetchTool] }, 400, onServers],
  ])('is reported for %s, for a count as for a message', async (_what, body, status, text) => {
    await using door = await open();
    for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
      const type = types[status];
      const answer = await door.post(path, body);
      expect([answer.status, answer.body]).toMatchObject([status, { error: { type, message: text } }]);
    }
    expect(door.primary.calls).toEqual([]);
  });
});

describe('A request for zero tokens', () => {
  const wish = { ...hello, max_tokens: 0 };
  const whole = { ...message, content: [], ...end, stop_reason: 'max_tokens', usage: { ...nothing, input_tokens: 7 } };

  it('is answered with the token count of its prompt, and runs no job', async () => {
    await using door = await open();
    expect((await door.post('/v1/messages', wish, mine)).body).toEqual(whole);
    const { text } = await door.post('/v1/messages', { ...wish, stream: true }, mine);
    expect(text.match(/(?<=^event: ).*/gm)).toEqual(['message_start', 'message_delta', 'message_stop']);
    expect(door.primary.calls.map(({ name }) => name)).toEqual(['countTokens', 'countTokens']);
  });
});

describe('A token count', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };

  it('covers all input of the model, with 1,600 for each image, and runs no job', async () => {
    await using door = await open();
    const messages = [user([image, textPart('One')]), assistant('Two'), user([image, image, textPart('Three')])];
    const body = { ...hello, ...calling, top_k: 5, system: 'Be kind.', messages };
    const { status, headers, body: answer } = await door.post('/v1/messages/count_tokens', body, mine);
    expect([status, answer]).toEqual([200, { input_tokens: 7 + 3 * 1600 }]);
    expect([headers.get('request-id'), headers.get('x-ignored-parameters')]).toEqual(['mine', 'top_k']);
    const tool = `{"name":"weather","description":"","input_schema":${JSON.stringify(ofCity)}}`;
    const texts = ['Be kind.', 'One', 'Two', 'Three', '', tool];
    expect(door.primary.calls.slice(-1)).toEqual([
      { name: 'countTokens', request: { texts, client: expect.any(String), model: expect.anything() } },
    ]);
  });

  it('covers calls, and results with their images too', async () => {
    await using door = await open();
    const messages = [
      user('One'),
      assistant([textPart('Two'), callOf('1', { city: 'Bonn' })]),
      user([resultOf('1', [image])]),
      assistant([callOf('2')]),
      user([resultOf('2', [textPart('windy'), image])]),
    ];
    const { body } = await door.post('/v1/messages/count_tokens', { ...hello, ...calling, messages });
    expect(body).toEqual({ input_tokens: 7 + 2 * 1600 });
    const said = ['One', 'Two', '{"city":"Bonn"}', '', '', '', '{}', '', 'windy'];
    const tool = `{"name":"weather","description":"","input_schema":${JSON.stringify(ofCity)}}`;
    const texts = ['', ...said, '', tool];
    expect(door.primary.calls.slice(-1)).toEqual([
      { name: 'countTokens', request: { texts, client: expect.any(String), model: expect.anything() } },
    ]);
  });
});

describe('The user id in the metadata', () => {
  const named = { ...hello, metadata: { user_id: 'ada' } };
  const open = (hasSubclients: boolean) =>
    sdkDoor(always(...begun, done), { before: [asHolder('key app', { name: 'app', hasSubclients })] });

  it.each(['/v1/messages', '/v1/messages/count_tokens'])(
    'selects the sub-client if the key allows it: %s',
    async (path) => {
      await using door = await open(true);
      const { status, headers } = await door.post(path, named);
      expect([status, headers.get('x-ignored-parameters')]).toEqual([200, null]);
      if (path === '/v1/messages') expect(door.job.client).toBe('key app/ada');
    },
  );

  it('is ignored if the key does not allow it', async () => {
    await using door = await open(false);
    const { headers } = await door.post('/v1/messages', named);
    expect(door.job.client).toBe('key app');
    expect(headers.get('x-ignored-parameters')).toBe('metadata');
  });
});

function refusing(error: RelayError) {
  // biome-ignore lint/correctness/useYield: fails before its first event
  return async function* (_request: JobRequest): AsyncGenerator<JobEvent> {
    throw error;
  };
}
