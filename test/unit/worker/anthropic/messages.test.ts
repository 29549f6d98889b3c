import { keyClient } from '../../../../src/shared/client.js';
import { type CliReason, RelayError } from '../../../../src/shared/errors.js';
import type { FailedOutcome, JobEvent, JobRequest } from '../../../../src/shared/job.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { begun, eventsOf, MessagesDoor, messageEvents } from '../../../support/doors/messages-door.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';

const hello = { model: 'eliza', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] };
const ofCity = { type: 'object', properties: { city: { type: 'string' } } };
const calling = { tools: [{ name: 'weather', input_schema: ofCity }], tool_choice: { type: 'any' } };
const mine = { 'x-request-id': 'mine' };
const used = { inputTokens: 100, outputTokens: 5, costUsd: null, cacheReadTokens: 60, cacheWriteTokens: 30 };
const usage = { input_tokens: 10, cache_creation_input_tokens: 30, cache_read_input_tokens: 60, output_tokens: 5 };
const nothing = { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
const message = { id: 'msg_mine', type: 'message', role: 'assistant', model: 'eliza', container: null };
const end = { stop_reason: 'end_turn', stop_sequence: null, stop_details: null };
const refusal = {
  ...end,
  stop_reason: 'refusal',
  stop_details: { type: 'refusal', category: null, explanation: null },
};
const call = { type: 'tool_use', id: 'toolu_1', name: 'weather', caller: { type: 'direct' } };

function says(...texts: readonly string[]): JobEvent[] {
  return texts.map((text) => ({ type: 'text-delta', text }));
}

function failing(outcome: FailedOutcome, reason?: CliReason, details?: [{ path: string; message: string }]): JobEvent {
  return jobFailed(outcome, { failure: { code: outcome, message: 'it failed', reason, details } });
}

const done = jobDone({ model: 'eliza', usage: used });
const made = { id: 'toolu_1', name: 'weather', input: '{"city":"Bonn"}' };
const calls = jobDone({ model: 'eliza', usage: used, calls: [made] });
/** Events of a model that starts a call and continues it in two pieces. */
const begins: JobEvent[] = [
  { type: 'call-start', id: made.id, name: made.name },
  { type: 'call-delta', text: '{"city"' },
  { type: 'call-delta', text: ':"Bonn"}' },
];
const cut = jobDone({ model: 'eliza', usage: used, stopSequence: 'END' });
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
  jobDone({
    model: 'eliza',
    usage: used,
    thoughts: [
      { text: 'Hm', signature: 'proof', at: 0, calls: 0 },
      { text: '', redacted: 'sealed', at: 5, calls: 0 },
    ],
  }),
];

function open(...events: readonly JobEvent[]): Promise<MessagesDoor> {
  return MessagesDoor.open(() => eventsOf(...events));
}

describe('A message', () => {
  it.each<[string, object, JobEvent[], object]>([
    ['text', {}, [...says('Good ', 'day'), done], { content: [{ type: 'text', text: 'Good day' }], ...end, usage }],
    [
      'thoughts and text, each at its place',
      thinking,
      thinks,
      {
        content: [
          { type: 'thinking', thinking: 'Hm', signature: 'proof' },
          { type: 'text', text: 'Good ' },
          { type: 'redacted_thinking', data: 'sealed' },
          { type: 'text', text: 'day' },
        ],
        ...end,
        usage,
      },
    ],
    [
      'a thought and a call',
      { ...calling, ...thinking },
      [jobDone({ model: 'eliza', usage: used, calls: [made], thoughts: [{ text: 'Hm', at: 0, calls: 0 }] })],
      {
        content: [
          { type: 'thinking', thinking: 'Hm', signature: '' },
          { ...call, input: { city: 'Bonn' } },
        ],
        ...end,
        stop_reason: 'tool_use',
        usage,
      },
    ],
    [
      'text before a stop sequence',
      { stop_sequences: ['END'] },
      [...says('Good'), cut],
      {
        content: [{ type: 'text', text: 'Good' }],
        ...end,
        stop_reason: 'stop_sequence',
        stop_sequence: 'END',
        usage,
      },
    ],
    [
      'a call of a tool, with its input as a value',
      calling,
      [calls],
      { content: [{ ...call, input: { city: 'Bonn' } }], ...end, stop_reason: 'tool_use', usage },
    ],
    [
      'text, and several calls behind it',
      calling,
      [...says('I see.'), jobDone({ model: 'eliza', usage: used, calls: [made, { ...made, id: 'b', input: '' }] })],
      {
        content: [
          { type: 'text', text: 'I see.' },
          { ...call, input: { city: 'Bonn' } },
          { ...call, id: 'b', input: {} },
        ],
        ...end,
        stop_reason: 'tool_use',
        usage,
      },
    ],
    [
      'a call whose input is no JSON',
      calling,
      [jobDone({ model: 'eliza', usage: used, calls: [{ ...made, input: '{"city' }] })],
      { content: [{ ...call, input: {} }], ...end, stop_reason: 'tool_use', usage },
    ],
    [
      'text though there are tools',
      calling,
      [...says('{"city":"Bonn"}'), done],
      { content: [{ type: 'text', text: '{"city":"Bonn"}' }], ...end, usage },
    ],
    [
      'text that has as many tokens as were wanted',
      {},
      [...says('Good'), jobDone({ model: 'eliza', usage: used, isCutShort: true })],
      { content: [{ type: 'text', text: 'Good' }], ...end, stop_reason: 'max_tokens', usage },
    ],
    ['a refusal', {}, [...says('I'), refused], { content: [{ type: 'text', text: 'I' }], ...refusal, usage: nothing }],
    ['a refused call of a tool', calling, [refused], { content: [], ...refusal, usage: nothing }],
  ])('is %s', async (_what, fields, events, expected) => {
    await using door = await open(...begun, ...events);
    const { status, headers, body } = await door.post({ ...hello, ...fields }, '/v1/messages', mine);
    expect([status, body]).toEqual([200, { ...message, ...expected }]);
    expect([headers.get('request-id'), headers.get('x-session')]).toEqual(['mine', 'replay']);
  });

  it('lists the ignored fields, including the effort if the model does not support it', async () => {
    await using door = await open({ type: 'job-admitted', session: null, ignoresEffort: true }, done);
    const { headers } = await door.post({ ...hello, top_k: 5, output_config: { effort: 'low' } });
    expect(headers.get('x-ignored-parameters')).toBe('top_k, output_config.effort');
    expect(door.job).toMatchObject({ operation: 'ask', effort: 'low', isEffortNeeded: false, isStreamed: false });
  });

  it('lists the options that the model does not support', async () => {
    const ignores = ['maxTokens', 'temperature', 'isParallel'] as const;
    await using door = await open({ type: 'job-admitted', session: null, ignoresEffort: false, ignores }, done);
    const choice = { type: 'auto', disable_parallel_tool_use: true };
    const { headers } = await door.post({ ...hello, ...calling, tool_choice: choice, temperature: 1 });
    expect(headers.get('x-ignored-parameters')).toBe('max_tokens, temperature, tool_choice.disable_parallel_tool_use');
  });

  it('passes its tools, options and results of calls to the job', async () => {
    await using door = await open(...begun, done);
    const messages = [
      ...hello.messages,
      { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'weather', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: 'windy' }] },
    ];
    await door.post({ ...hello, ...calling, messages, temperature: 0.5 });
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

  it('omits provider-hosted tools, and reports them', async () => {
    await using door = await open(...begun, done);
    const search = { type: 'web_search_20250305', name: 'web_search' };
    const { headers } = await door.post({ ...hello, tools: [...calling.tools, search] });
    expect(headers.get('x-ignored-parameters')).toBe('tools.web_search_20250305');
    expect(door.job.offer?.tools.map(({ name }) => name)).toEqual(['weather']);
  });

  it('has tokens counted by the tokenizer if the model reports none', async () => {
    await using door = await open(...begun, jobDone({ estimate: { inputTokens: 3, outputTokens: 2 } }));
    expect((await door.post(hello)).body.usage).toEqual({ ...nothing, input_tokens: 3, output_tokens: 2 });
  });
});

describe('A streamed message', () => {
  /** Number of prompt tokens, which a stream contains before the model CLI reports it. */
  const estimate = expect.any(Number);
  const start = [
    'message_start',
    {
      type: 'message_start',
      message: { ...message, content: [], ...end, stop_reason: null, usage: { ...nothing, input_tokens: estimate } },
    },
  ];

  it('starts with an estimate of the prompt tokens, and ends with the tokens that the model CLI reports', async () => {
    const tokensOf = async (body: object) => {
      await using door = await open(...begun, ...says('Hi'), done);
      const events = messageEvents((await door.post({ ...hello, ...body, stream: true })).text);
      return (events[0] as [string, { message: { usage: { input_tokens: number } } }])[1].message.usage.input_tokens;
    };
    const ofHistory = ['x'.repeat(4000), 'y'.repeat(400), 'z'.repeat(40)].map((content, index) => ({
      role: index === 1 ? 'assistant' : 'user',
      content,
    }));
    expect(await tokensOf({})).toBe(1);
    expect(await tokensOf({ system: 'x'.repeat(4000) })).toBe(1001);
    expect(await tokensOf({ messages: ofHistory })).toBe(1110);
    expect(await tokensOf(calling)).toBeGreaterThan(10);
  });

  const block = (content_block: object, index = 0) => [
    'content_block_start',
    { type: 'content_block_start', index, content_block },
  ];
  const textBlock = block({ type: 'text', text: '' });
  const delta = (delta: object, index = 0) => ['content_block_delta', { type: 'content_block_delta', index, delta }];
  const textDelta = (text: string) => delta({ type: 'text_delta', text });
  const inputDelta = (partial_json: string, index = 0) => delta({ type: 'input_json_delta', partial_json }, index);
  const stopOf = (index: number) => ['content_block_stop', { type: 'content_block_stop', index }];
  const blockStop = stopOf(0);
  const stop = ['message_stop', { type: 'message_stop' }];
  const last = (ending: object, used: object = usage) => [
    ['message_delta', { type: 'message_delta', delta: { ...ending, container: null }, usage: used }],
    stop,
  ];

  it.each<[string, object, JobEvent[], unknown[]]>([
    [
      'text',
      {},
      [...says('Good ', 'day'), done],
      [textBlock, textDelta('Good '), textDelta('day'), blockStop, ...last(end)],
    ],
    ['no text', {}, [done], [textBlock, blockStop, ...last(end)]],
    [
      'thoughts and text, each at its place',
      thinking,
      thinks,
      [
        block({ type: 'thinking', thinking: '', signature: '' }),
        delta({ type: 'thinking_delta', thinking: 'H' }),
        delta({ type: 'thinking_delta', thinking: 'm' }),
        delta({ type: 'signature_delta', signature: 'proof' }),
        blockStop,
        block({ type: 'text', text: '' }, 1),
        delta({ type: 'text_delta', text: 'Good ' }, 1),
        stopOf(1),
        block({ type: 'redacted_thinking', data: 'sealed' }, 2),
        stopOf(2),
        block({ type: 'text', text: '' }, 3),
        delta({ type: 'text_delta', text: 'day' }, 3),
        stopOf(3),
        ...last(end),
      ],
    ],
    [
      'text before a stop sequence',
      { stop_sequences: ['END'] },
      [...says('Good'), cut],
      [
        textBlock,
        textDelta('Good'),
        blockStop,
        ...last({ ...end, stop_reason: 'stop_sequence', stop_sequence: 'END' }),
      ],
    ],
    [
      'a call of a tool',
      calling,
      [...begins, calls],
      [
        block({ ...call, input: {} }),
        inputDelta('{"city"'),
        inputDelta(':"Bonn"}'),
        blockStop,
        ...last({ ...end, stop_reason: 'tool_use' }),
      ],
    ],
    [
      'text, and several calls behind it',
      calling,
      [
        ...says('I see.'),
        ...begins,
        { type: 'call-start', id: 'b', name: 'weather' },
        jobDone({ model: 'eliza', usage: used, calls: [made, { ...made, id: 'b', input: '{}' }] }),
      ],
      [
        textBlock,
        textDelta('I see.'),
        blockStop,
        block({ ...call, input: {} }, 1),
        inputDelta('{"city"', 1),
        inputDelta(':"Bonn"}', 1),
        stopOf(1),
        block({ ...call, id: 'b', input: {} }, 2),
        stopOf(2),
        ...last({ ...end, stop_reason: 'tool_use' }),
      ],
    ],
    [
      'text that has as many tokens as were wanted',
      {},
      [...says('Good'), jobDone({ model: 'eliza', usage: used, isCutShort: true })],
      [textBlock, textDelta('Good'), blockStop, ...last({ ...end, stop_reason: 'max_tokens' })],
    ],
    ['a refusal', {}, [...says('I'), refused], [textBlock, textDelta('I'), blockStop, ...last(refusal, nothing)]],
    ['a refused call of a tool', calling, [refused], last(refusal, nothing)],
    [
      'a failure in its midst',
      {},
      [...says('Good'), failing('cli_error', 'overloaded')],
      [
        textBlock,
        textDelta('Good'),
        ['error', { type: 'error', error: { type: 'overloaded_error', message: 'it failed' }, request_id: 'mine' }],
      ],
    ],
  ])('sends %s as named events', async (_what, fields, events, expected) => {
    await using door = await open(...begun, ...events);
    const { status, headers, text } = await door.post({ ...hello, ...fields, stream: true }, '/v1/messages', mine);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    expect([headers.get('request-id'), headers.get('x-ignored-parameters')]).toEqual(['mine', null]);
    expect(messageEvents(text)).toEqual([start, ...expected]);
  });

  it('starts when the job is admitted, and sends the queue position as a comment', async () => {
    const [admitted, started] = begun as [JobEvent, JobEvent];
    await using door = await open(admitted, { type: 'job-queued', position: 3, reason: 'slot' }, started, done);
    const { text } = await door.post({ ...hello, stream: true }, '/v1/messages', mine);
    expect(messageEvents(text).slice(0, 3)).toEqual([': queued 3', start, textBlock]);
  });

  it('is an ordinary error response if the job was refused', async () => {
    await using door = await MessagesDoor.open(
      refusing(new RelayError('concurrency_limited', 'full', { retryAfterSeconds: 9 })),
    );
    const { status, headers, body } = await door.post({ ...hello, stream: true });
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
    const answer = await door.post(hello, '/v1/messages', mine);
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
    await using door = await MessagesDoor.open(refusing(refusal));
    const { headers, ...answer } = await door.post(hello);
    expect([answer.status, answer.body]).toMatchObject([status, { type: 'error', error: { type } }]);
    expect([headers.get('retry-after'), headers.get('x-should-retry')]).toEqual([
      refusal.retryAfterSeconds === undefined ? null : '9',
      null,
    ]);
  });

  it.each<[string, object | string, number, string, string]>([
    ['what is no JSON', '{', 400, 'invalid_request_error', 'body: must be valid JSON'],
    ['no model', { messages: [] }, 400, 'invalid_request_error', 'model: must be sent'],
    ['no name of a model', { model: 5 }, 400, 'invalid_request_error', 'model: must be a string'],
    [
      'what can be no model',
      { ...hello, model: '-x' },
      404,
      'not_found_error',
      'model: must be a model name: letters, digits and . _ : / @ [ ] -',
    ],
    ['no messages', { model: 'eliza' }, 400, 'invalid_request_error', 'messages: must be sent'],
    [
      'too much',
      { ...hello, system: 'x'.repeat(100_000) },
      413,
      'request_too_large',
      'the body is larger than 100000 bytes (MODEL_API_BODY_LIMIT)',
    ],
    [
      'tools of servers alone',
      { ...hello, tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      400,
      'invalid_request_error',
      "tools: must have a tool of the client: web_search_20250305 can only run on the provider's servers",
    ],
  ])('is reported for %s, for a count as for a message', async (_what, body, status, type, text) => {
    await using door = await open();
    for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
      const answer = await door.post(body, path);
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
    expect((await door.post(wish, '/v1/messages', mine)).body).toEqual(whole);
    const { text } = await door.post({ ...wish, stream: true }, '/v1/messages', mine);
    expect(text.match(/(?<=^event: ).*/gm)).toEqual(['message_start', 'message_delta', 'message_stop']);
    expect(door.primary.calls.map(({ name }) => name)).toEqual(['countTokens', 'countTokens']);
  });
});

describe('A token count', () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };

  it('covers all input of the model, with 1,600 for each image, and runs no job', async () => {
    await using door = await open();
    const messages = [
      { role: 'user', content: [image, { type: 'text', text: 'One' }] },
      { role: 'assistant', content: 'Two' },
      { role: 'user', content: [image, image, { type: 'text', text: 'Three' }] },
    ];
    const body = { ...hello, ...calling, top_k: 5, system: 'Be kind.', messages };
    const { status, headers, body: answer } = await door.post(body, '/v1/messages/count_tokens', mine);
    expect([status, answer]).toEqual([200, { input_tokens: 7 + 3 * 1600 }]);
    expect([headers.get('request-id'), headers.get('x-ignored-parameters')]).toEqual(['mine', 'top_k']);
    const texts = ['Be kind.', 'One', 'Two', 'Three', '', `weather  ${JSON.stringify(ofCity)}`];
    expect(door.primary.calls.slice(-1)).toEqual([
      { name: 'countTokens', request: { texts, client: expect.any(String) } },
    ]);
  });

  it('covers calls, and results with their images too', async () => {
    await using door = await open();
    const messages = [
      { role: 'user', content: 'One' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Two' },
          { type: 'tool_use', id: '1', name: 'weather', input: { city: 'Bonn' } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: [image] }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: '2', name: 'weather', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: '2', content: [{ type: 'text', text: 'windy' }, image] }],
      },
    ];
    const { body } = await door.post({ ...hello, ...calling, messages }, '/v1/messages/count_tokens');
    expect(body).toEqual({ input_tokens: 7 + 2 * 1600 });
    const said = ['One', 'Two', '{"city":"Bonn"}', '', '', '', '{}', '', 'windy'];
    const texts = ['', ...said, '', `weather  ${JSON.stringify(ofCity)}`];
    expect(door.primary.calls.slice(-1)).toEqual([
      { name: 'countTokens', request: { texts, client: expect.any(String) } },
    ]);
  });
});

describe('The user id in the metadata', () => {
  const named = { ...hello, metadata: { user_id: 'ada' } };
  const withKey =
    (hasSubclients: boolean): Handler =>
    (_req, res, next) => {
      const key = { name: 'app', digest: '', scopes: [], isCapped: false, hasSubclients, expiresAt: null };
      Object.assign(res.locals, { key, client: keyClient('app') });
      next();
    };

  it.each(['/v1/messages', '/v1/messages/count_tokens'])(
    'selects the sub-client if the key allows it: %s',
    async (path) => {
      await using door = await MessagesDoor.open(() => eventsOf(...begun, done), [withKey(true)]);
      const { status, headers } = await door.post(named, path);
      expect([status, headers.get('x-ignored-parameters')]).toEqual([200, null]);
      if (path === '/v1/messages') expect(door.job.client).toBe('key app/ada');
    },
  );

  it('is ignored if the key does not allow it', async () => {
    await using door = await MessagesDoor.open(() => eventsOf(...begun, done), [withKey(false)]);
    const { headers } = await door.post(named);
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
