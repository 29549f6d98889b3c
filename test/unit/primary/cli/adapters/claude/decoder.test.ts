import { ClaudeDecoder } from '../../../../../../src/primary/cli/adapters/claude/decoder.js';
import { turnIdOf } from '../../../../../../src/primary/cli/adapters/claude/line-ids.js';
import { ClaudeWriter } from '../../../../../../src/primary/cli/adapters/claude/writer.js';
import {
  type DecoderEvent,
  type Exit,
  plainLaunch,
  type TurnEvent,
  unknownUsage,
} from '../../../../../../src/primary/cli/contract/adapter.js';

function text(...lines: readonly object[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

const init = { type: 'system', subtype: 'init', cwd: '/nowhere', tools: [] };
const start = stream({ type: 'message_start', message: { id: 'msg_1', model: 'claude-test', content: [] } });
const stop = stream({ type: 'content_block_stop', index: 0 });
const usage = { input_tokens: 1, cache_creation_input_tokens: 20, cache_read_input_tokens: 300, output_tokens: 4 };
const taken = { type: 'result', subtype: 'success', is_error: false, num_turns: 0, result: '', total_cost_usd: 0 };

function stream(event: object) {
  return { type: 'stream_event', event, parent_tool_use_id: null, session_id: 's' };
}

function delta(words: string) {
  return stream({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } });
}

function assistant(words: string, more: object = {}) {
  const message = { model: 'claude-test', content: [{ type: 'text', text: words }] };
  return { type: 'assistant', message, parent_tool_use_id: null, ...more };
}

function open(type: string) {
  return stream({ type: 'content_block_start', index: 0, content_block: { type } });
}

function assistantWith(block: object) {
  return { ...assistant(''), message: { model: 'claude-test', content: [block] } };
}

function textsOf(events: readonly DecoderEvent[]) {
  return events.map((event) => ('text' in event ? event.text : event.type));
}

/** Returns a result line. The type is not the first field in every version. */
function result(more: object = {}) {
  const outcome = {
    is_error: false,
    num_turns: 1,
    result: 'Hi é',
    terminal_reason: 'completed',
    api_error_status: null,
  };
  return { duration_ms: 7, ...outcome, subtype: 'success', type: 'result', total_cost_usd: 0.1, usage, ...more };
}

function failure(words: string, more: object = {}, error?: string): string {
  const synthetic = {
    type: 'assistant',
    error,
    message: { model: '<synthetic>', content: [{ type: 'text', text: words }] },
  };
  return text(init, synthetic, result({ is_error: true, result: words, total_cost_usd: 0, ...more }));
}

const turn = text(init, start, delta('Hi '), delta('é'), assistant('Hi é'), stop, result());
const deltas: readonly DecoderEvent[] = [
  { type: 'text-delta', text: 'Hi ' },
  { type: 'text-delta', text: 'é' },
];
const end: TurnEvent = {
  type: 'turn-end',
  text: null,
  model: 'claude-test',
  usage: { inputTokens: 321, outputTokens: 4, costUsd: 0.1, cacheReadTokens: 300, cacheWriteTokens: 20 },
};

/** Drops the model from the events: each message begins with its name. */
function withoutModel(events: Iterable<DecoderEvent>): readonly DecoderEvent[] {
  return Array.from(events).filter(({ type }) => type !== 'model-named');
}

function read(...chunks: readonly string[]): readonly DecoderEvent[] {
  const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
  return withoutModel(chunks.flatMap((chunk) => Array.from(decoder.read(chunk))));
}

describe('The output that the claude adapter reads', () => {
  it('has the blocks and the citations of its text if the process has got a document to cite', () => {
    const citation = { type: 'char_location', cited_text: 'Hi' };
    const cited = stream({ type: 'content_block_delta', index: 0, delta: { type: 'citations_delta', citation } });
    const blocks = text(init, start, open('text'), delta('a'), stop, open('text'), cited, delta('b'), stop);
    const events = (citations: boolean) => {
      const document = { mediaType: 'text/plain', data: 'SGk=', at: 0, name: '', digest: 'x' } as const;
      const writer = new ClaudeWriter(new Set());
      const images = [{ ...document, ...(citations && { citations: true as const }) }];
      const input = writer.write({ ...plainLaunch(null), text: 'Hi', images, history: [] }, 1);
      expect(input.text.includes('"citations":{"enabled":true}')).toBe(citations);
      return withoutModel(new ClaudeDecoder(writer).read(blocks));
    };
    expect(events(true)).toEqual([
      { type: 'passage', passage: null },
      { type: 'text-delta', text: 'a' },
      { type: 'passage', passage: null },
      { type: 'passage', passage: citation },
      { type: 'text-delta', text: 'b' },
    ]);
    expect(textsOf(events(false))).toEqual(['a', 'b']);
  });

  it('reports the sizes of the model that has answered, not of a model that served the CLI itself', () => {
    const size = (contextWindow: unknown) => ({ contextWindow, maxOutputTokens: 64_000, costUSD: 1 });
    const modelUsage = { 'claude-small': size(1000), 'claude-test': size(200_000) };
    const ends = (more: object) =>
      [...new ClaudeDecoder(new ClaudeWriter(new Set()), false).read(text(init, assistant('Hi é'), result(more)))].at(
        -1,
      );
    expect(ends({ modelUsage })).toMatchObject({ sizes: { maxInputTokens: 200_000, maxOutputTokens: 64_000 } });
    expect(ends({ modelUsage: { 'claude-test': size('many') } })).toMatchObject({ sizes: { maxInputTokens: null } });
    expect(ends({ modelUsage: { 'claude-small': size(7) } })).toMatchObject({ sizes: { maxInputTokens: 7 } });
    expect(ends({ modelUsage: { small: size(7), claude: size(8) } })).toMatchObject({ sizes: { maxInputTokens: 8 } });
    for (const without of [{}, { modelUsage: null }, { modelUsage: { small: size(1), tiny: size(1) } }])
      expect(ends(without)).not.toHaveProperty('sizes');
  });

  it('is the answer and its end, wherever the output is split', () => {
    const expected = [...deltas, end];
    for (let at = 0; at <= turn.length; at++) expect(read(turn.slice(0, at), turn.slice(at))).toEqual(expected);
    expect(read(...turn)).toEqual(expected);
  });

  it('begins with the model that answers, which may differ from the requested one', () => {
    const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
    const named = { type: 'model-named', model: 'claude-test' };
    expect(decoder.read(text(init, start))).toEqual([named]);
    expect(decoder.read(text(delta('Hi '), delta('é'), assistant('Hi é'), stop, result()))).toEqual([...deltas, end]);
  });

  it('contains one turn after another, each with its cost', () => {
    const next = text(init, start, delta('Yes'), assistant('Yes'), result({ result: 'Yes', total_cost_usd: 0.3 }));
    const cost = { inputTokens: 321, outputTokens: 4, costUsd: 0.2, cacheReadTokens: 300, cacheWriteTokens: 20 };
    const second = [
      { type: 'text-delta', text: 'Yes' },
      { ...end, usage: cost },
    ];
    expect(read(turn + next)).toEqual([...deltas, end, ...second]);
  });

  it('skips unknown lines', () => {
    const noise = [
      'Warning: not JSON\n{"type":"stream_event"\n\n[]\nnull\n"x"\n{"type":7}\n',
      text({ type: 'tomorrow' }, { type: 'user', message: { content: 'x' } }, { type: 'rate_limit_event' }),
      text(stream({ type: 'tomorrow' }), stream({ type: 'content_block_delta', delta: { type: 'thinking_delta' } })),
    ];
    expect(read(...noise, turn)).toEqual([...deltas, end]);
  });

  it('skips the messages of a subagent', () => {
    const subagent = { parent_tool_use_id: 'toolu_1' };
    expect(read(text({ ...delta('aside'), ...subagent }, assistant('aside', subagent)), turn)).toEqual([
      ...deltas,
      end,
    ]);
  });

  it('repeats the whole answer at the end if a broken stream was restarted', () => {
    const broken = text(start, delta('Hi'), stop, { type: 'system', subtype: 'api_retry' });
    expect(read(broken, turn).at(-1)).toEqual({ ...end, text: 'Hi é' });
  });

  it('has the whole answer at the end if nothing was streamed', () => {
    expect(read(text(assistant('Hi é'), result()))).toEqual([{ ...end, text: 'Hi é' }]);
    expect(read(text(start, result()))).toEqual([{ ...end, text: 'Hi é' }]);
  });

  it('includes every block of an answer, although the result repeats only the last', () => {
    const blocks = text(start, delta('one '), assistant('one '), delta('two'), assistant('two'));
    expect(read(blocks, text(result({ result: 'two' }))).at(-1)).toEqual(end);
  });

  it('separates the text before and after a tool call, streamed and whole', () => {
    const look = text(
      start,
      open('text'),
      delta('Let me '),
      delta('look.'),
      assistant('Let me look.'),
      open('tool_use'),
    );
    const used = text(assistantWith({ type: 'tool_use' }), stop, { type: 'user', message: {} });
    const told = text(start, open('text'), delta('It says '), delta('42.'), assistant('It says 42.'));
    const whole = 'Let me look.\n\nIt says 42.';
    expect(textsOf(read(look, used, told, text(result())))).toEqual(['Let me ', 'look.', '\n\nIt says ', '42.', null]);
    const messages = [assistant('Let me look.'), assistantWith({ type: 'tool_use' }), assistant('It says 42.')];
    expect(textsOf(read(text(...messages, result())))).toEqual([whole]);
  });

  it('does not separate text without a tool call, nor after a call without text before it', () => {
    const cut = text(start, open('thinking'), open('text'), delta('The cat s'), assistant('The cat s'), stop);
    const resumed = text(start, open('text'), delta('at.'), assistant('at.'), result());
    expect(textsOf(read(cut, resumed))).toEqual(['thought-end', 'The cat s', 'at.', null]);
    const silent = text(start, open('tool_use'), assistantWith({ type: 'tool_use' }), stop);
    expect(textsOf(read(silent, resumed))).toEqual(['at.', null]);
  });

  it('requests more input when a line of the history was taken', () => {
    const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
    expect(decoder.read(text(init, taken))).toEqual([{ type: 'input-taken' }]);
    expect(withoutModel(decoder.read(turn))).toEqual([...deltas, end]);
  });

  it('is a complete turn even if the result has no details', () => {
    const bare = { type: 'result', is_error: false, num_turns: 1 };
    const [last, ...before] = [...read(text(start, delta('Hi '), delta('é'), assistant('Hi é'), bare))].reverse();
    expect([before.reverse(), last]).toEqual([deltas, { ...end, usage: unknownUsage }]);
  });
});

describe('A line of another turn', () => {
  const of = (turn: number) => ({ user_message_uuid: turnIdOf(turn) });
  const stray: TurnEvent = { type: 'stray' };
  const [first, second] = [result({ ...of(1) }), result({ result: 'Yes', total_cost_usd: 0.3, ...of(2) })];
  const answer = [{ ...start, ...of(2) }, delta('Yes'), assistant('Yes', of(2)), second];
  const yes = [
    { type: 'text-delta', text: 'Yes' },
    { ...end, usage: { ...end.usage, costUsd: 0.2 } },
  ];

  /** Decodes a second turn. The lines of the first one contain its number if `names` is true. */
  function secondTurn(lines: readonly object[], names: boolean): readonly DecoderEvent[] {
    const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
    decoder.begin(1);
    const named = names ? of(1) : {};
    decoder.read(text(init, { ...start, ...named }, delta('Hi é'), assistant('Hi é', named), result(named)));
    decoder.begin(2);
    return withoutModel(decoder.read(text(...lines)));
  }

  function unnamed(lines: readonly object[]): object[] {
    return lines.map((line) => ({ ...line, user_message_uuid: undefined }));
  }

  it.each([
    ['a whole message', [assistant('Hi é', of(1))]],
    ['a result', [first]],
    ['a result that says it failed', [result({ is_error: true, ...of(1) })]],
  ])('is a stray if the program names the turn: %s', (_, late) => {
    expect(secondTurn([...late, ...answer], true)).toEqual([stray, ...yes]);
  });

  it('is a stray in the middle of this turn', () => {
    const [begun, ...rest] = answer as [object, ...object[]];
    expect(secondTurn([begun, assistant('Hi é', of(1)), first, ...rest], true)).toEqual([stray, stray, ...yes]);
  });

  it('is a stray, as are the deltas after it', () => {
    const late = [{ ...start, ...of(1) }, open('text'), delta('Hi é')];
    expect(secondTurn([...late, ...answer], true)).toEqual([stray, stray, stray, ...yes]);
  });

  it.each([
    ['a whole message, where the turns before were streamed', [assistant('Hi é')]],
    ['a result of which nothing was said', [result()]],
    ['a delta of no message', [delta('Hi é')]],
  ])('is a stray if only the order shows it: %s', (_, late) => {
    expect(secondTurn([...late, ...unnamed(answer)], false)).toEqual([stray, ...yes]);
  });

  it('is recognized only by a known turn id: an unknown id means nothing', () => {
    const other = { user_message_uuid: '8b4bcb3a-30b5-4c92-9b12-3f4e9fce0b6d' };
    expect(secondTurn([start, delta('Hi é'), assistant('Hi é', other), result(other)], true)).not.toContainEqual(stray);
  });

  it('is not confused with an answer that was not streamed', () => {
    const whole = [assistant('Yes'), result({ result: 'Yes', total_cost_usd: 0.3 })];
    expect(secondTurn(whole, false)).toEqual([{ ...yes[1], text: 'Yes' }]);
  });

  it('is not confused with a failure of this turn', () => {
    expect(secondTurn([result({ is_error: true, result: 'no' })], false)).toMatchObject([{ type: 'turn-failed' }]);
  });
});

describe('a claude process between two turns', () => {
  /** Whether the lines reveal an answer outside a turn: by an event, or before any event by the decoder's state. */
  function tellsOf(...lines: readonly object[]): boolean {
    const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
    decoder.read(turn);
    return decoder.read(text(...lines)).length > 0 || decoder.isMidAnswer;
  }

  it('is known to have written part of an answer', () => {
    const failedOne = { ...assistant('x', { error: 'rate_limit' }), message: { model: '<synthetic>', content: [] } };
    expect(tellsOf()).toBe(false);
    expect(tellsOf(init, { type: 'command_lifecycle', state: 'completed' })).toBe(false);
    for (const line of [start, delta('Hi'), assistant('Hi'), failedOne]) expect(tellsOf(line)).toBe(true);
  });
});

describe('The model behind claude', () => {
  const thought = stream({ type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'Hm' } });
  const call = stream({ type: 'content_block_delta', delta: { type: 'input_json_delta', partial_json: '{' } });
  const synthetic = { type: 'assistant', message: { model: '<synthetic>', content: [] } };

  function hasBegunAfter(...lines: readonly object[]): boolean {
    const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
    decoder.read(text(...lines));
    return decoder.hasBegun;
  }

  it.each([
    ['text', delta('Hi')],
    ['a thought', thought],
    ['the input of a tool', call],
    ['a whole message', assistant('Hi')],
  ])('has begun with %s', (_, line) => {
    expect(hasBegunAfter(init, start, line)).toBe(true);
  });

  it('has not begun while the CLI reports about itself, nor after its turn has ended', () => {
    const status = { type: 'system', subtype: 'status', status: 'requesting' };
    expect(hasBegunAfter(init, status, { type: 'system', subtype: 'api_retry' }, synthetic, taken)).toBe(false);
    expect(hasBegunAfter(init, start)).toBe(false);
    expect(hasBegunAfter(init, start, delta('Hi é'), result(), init)).toBe(false);
  });
});

describe('The reason of a failure', () => {
  it.each([
    ['auth', failure('Not logged in · Please run /login')],
    ['auth', failure('Invalid API key', { api_error_status: 401 })],
    ['auth', failure('Failed', {}, 'authentication_failed')],
    ['quota', failure('Rejected', { api_error_status: 429 })],
    ['quota', failure('Credit balance is too low', {}, 'billing_error')],
    ['overloaded', failure('529', { api_error_status: 529 }, 'server_error')],
    ['overloaded', failure('API Error: Repeated 529 Overloaded errors', {}, 'server_error')],
    ['prompt_too_long', failure('x', { terminal_reason: 'prompt_too_long' }, 'invalid_request')],
    ['prompt_too_long', failure('x', { terminal_reason: 'blocking_limit' })],
    ['prompt_too_long', failure('Prompt is too long')],
    ['quota', failure('API Error: 400 Your credit balance is too low', { api_error_status: 400 }, 'billing_error')],
    ['model_unknown', failure('x', { api_error_status: 404 })],
    ['output_too_large', failure('x', {}, 'max_output_tokens')],
    ['other', failure('x', { api_error_status: 500 }, 'constructor')],
    ['other', failure('', { result: undefined, errors: ['something else'] })],
    ['other', text(init, result({ num_turns: 0, result: 'this is a command' }))],
  ])('is %s (%#)', (reason, output) => {
    const message = expect.stringMatching(/^the model CLI reports: \S/);
    const quota = reason === 'quota' ? { quota: expect.anything() } : {};
    const [failed, ...rest] = read(output);
    expect(rest).toEqual([]);
    expect(failed).toMatchObject({ type: 'turn-failed', reason, message, ...quota });
  });

  it.each([
    ['account', '401', failure('no', { api_error_status: 401 }, 'authentication_failed')],
    ['account', 'its own login', failure('Not logged in', {}, 'authentication_failed')],
    ['account', 'an account on hold', failure('no', { api_error_status: 403 }, 'account_on_hold')],
    [undefined, '403', failure('no', { api_error_status: 403 }, 'authentication_failed')],
    [undefined, 'words', failure('Please run /login')],
  ])('is about the account (%s) because of %s', (scope, _, output) => {
    const [failed] = read(output);
    expect(failed).toMatchObject({ reason: 'auth' });
    expect(failed?.type === 'turn-failed' && failed.scope).toBe(scope);
  });

  it('is not derived from words of the request', () => {
    const writer = new ClaudeWriter(new Set(['model']));
    const decoder = new ClaudeDecoder(writer);
    writer.write({ ...plainLaunch('invalid-api-key'), text: 'Say /login', history: [] }, 1);
    decoder.begin(1);
    const words = 'API Error: model invalid-api-key can not say /login';
    expect(decoder.read(failure(words)).at(-1)).toMatchObject({ type: 'turn-failed', reason: 'other' });
  });

  it('is the quota of the account if the job names no model, else that of the model', () => {
    const scopeOf = (model: string | null) => {
      const writer = new ClaudeWriter(new Set());
      writer.write({ ...plainLaunch(model), text: 'Hello', history: [] }, 1);
      const output = failure('Credit balance is too low', { api_error_status: 402 }, 'billing_error');
      const failed = new ClaudeDecoder(writer).read(output).at(-1);
      return failed?.type === 'turn-failed' && failed.quota?.scope;
    };
    expect([scopeOf(null), scopeOf('big')]).toEqual(['account', 'model']);
  });

  it('is an unknown model if the program rejects the model', () => {
    const writer = new ClaudeWriter(new Set(['model']));
    writer.write({ ...plainLaunch('big'), text: 'Hello', history: [] }, 1);
    const response = { request_id: 'model and effort', subtype: 'error', error: 'unknown: big' };
    const line = text({ type: 'control_response', response });
    expect(new ClaudeDecoder(writer).read(line)).toMatchObject([{ type: 'turn-failed', reason: 'model_unknown' }]);
  });

  it('is reported in one short line', () => {
    const [failed] = read(failure(`first\u001b[31m line ${'x'.repeat(1000)}\nsecond line`));
    expect(failed).toMatchObject({
      message: expect.stringMatching(/^the model CLI reports: first\[31m line x{280,300}$/),
    });
  });

  it('does not apply to the next turn', () => {
    const [failed, ...rest] = read(failure('Failed', {}, 'rate_limit'), turn, failure('x'));
    expect([failed, rest.at(-1)]).toMatchObject([{ reason: 'quota' }, { reason: 'other' }]);
  });
});

describe('The reply of claude to a control request', () => {
  const response = (more: object) => ({
    type: 'control_response',
    response: { request_id: 'model and effort', ...more },
  });

  it('is no part of the answer if the request succeeded', () => {
    const models = [{ value: 'default', displayName: 'Default' }];
    expect(read(text(response({ subtype: 'success', response: { models } })), turn)).toEqual([...deltas, end]);
  });

  it('fails the turn if the request was rejected, before any answer', () => {
    const [first] = read(text(response({ subtype: 'error', error: 'Unsupported\ncontrol' })), turn);
    const message = 'the model CLI does not accept the model and effort of this request: Unsupported';
    expect(first).toEqual({ type: 'turn-failed', reason: 'other', message });
  });

  it('is not repeated in the message if its id is unknown', () => {
    const odd = { subtype: 'error', request_id: `\u001b[2J\n${'x'.repeat(1000)}` };
    const line = JSON.stringify({ type: 'control_response', response: odd });
    const message = 'the model CLI does not accept the details of this request';
    expect(read(`${line}\n`)[0]).toMatchObject({ type: 'turn-failed', message });
  });
});

describe('An answer with a schema', () => {
  const value = { a: 'x', b: [1] };
  const called = text(
    ...[init, start, open('text'), delta('Let me see.'), assistant('Let me see.')],
    ...[open('tool_use'), assistantWith({ type: 'tool_use' }), stop, { type: 'user', message: {} }],
  );

  it('is the value alone, whatever text preceded it', () => {
    const told = result({ num_turns: 2, stop_reason: 'tool_use', result: '{"a"…', structured_output: value });
    expect(read(called, text(told)).at(-1)).toEqual({ ...end, text: '{"a":"x","b":[1]}' });
  });

  it('is empty if its value is nested too deeply to be serialized', () => {
    const deep = text(result({ structured_output: 'deep' })).replace('"deep"', '['.repeat(50_000) + ']'.repeat(50_000));
    expect(read(called, deep).at(-1)).toEqual({ ...end, text: '' });
  });

  it('is text if the model returned no value', () => {
    expect(read(turn.replace('"num_turns":1', '"num_turns":2')).at(-1)).toEqual(end);
  });

  it.each([{ terminal_reason: 'structured_output_retry_exhausted' }, { terminal_reason: null }])(
    'is a schema mismatch if every value was rejected: %j',
    (more) => {
      const told = { is_error: true, subtype: 'error_max_structured_output_retries', result: undefined, ...more };
      expect(read(called, text(result(told))).at(-1)).toMatchObject({ type: 'turn-failed', reason: 'schema_mismatch' });
    },
  );
});

it.each([
  ['API Error: 400 tools.0: too odd', 'tools.0: too odd'],
  ['API Error: 400 {"error":{"message":"tools.0: too odd"}}', 'tools.0: too odd'],
  ['API Error: 400 see http://gateway.internal:4000/v1/messages now', 'see (address) now'],
  ['API Error: 400 from 10.0.0.7:443 and gateway.local:8080', 'from (address) and (address)'],
  ['API Error: 400 see https://docs.anthropic.com/errors', 'see https://docs.anthropic.com/errors'],
  ['API Error: 400 see https://anthropic.com.gateway.internal/x', 'see (address)'],
  ['API Error: 422 tools.0: too odd', 'tools.0: too odd', 422],
])(
  'A request that the API rejects is reported with the sentence of the API, without the address of the operator: %s',
  (words, said, status = 400) => {
    expect(read(failure(words as string, { api_error_status: status })).at(-1)).toMatchObject({
      reason: 'request_refused',
      message: `the model's API refuses the request: ${said}`,
    });
  },
);

it('An answer that a limit cuts ends before the message has ended, because the CLI would then request the rest', () => {
  const cut = stream({ type: 'message_delta', delta: { stop_reason: 'max_tokens' }, usage: { output_tokens: 9 } });
  const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
  decoder.begin(1);
  const events = [...decoder.read(text(start, open('text'), delta('Once'), stop, cut))];
  expect(events.at(-1)).toMatchObject({ type: 'turn-end', isCutShort: true, usage: { outputTokens: 9 } });
  const whole = stream({ type: 'message_delta', delta: { stop_reason: 'end_turn' } });
  expect(textsOf(read(text(start, open('text'), delta('Once'), stop, whole)))).not.toContain('turn-end');
});

it('A message that the API begins after a cut answer is counted, until the next turn', () => {
  const cut = stream({ type: 'message_delta', delta: { stop_reason: 'max_tokens' }, usage: { output_tokens: 9 } });
  const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
  const isCounted = (...lines: readonly object[]) =>
    [...decoder.read(text(...lines))].some(({ type }) => type === 'late-message');
  decoder.begin(1);
  expect(isCounted(start, open('text'), delta('Once'), stop, cut)).toBe(false);
  expect(isCounted(stream({ type: 'message_stop' }))).toBe(false);
  expect(isCounted(start)).toBe(true);
  decoder.begin(2);
  expect(isCounted(start)).toBe(false);
});

describe('A CLI that waits before it retries the API', () => {
  const retry = (more: object) => ({
    type: 'system',
    subtype: 'api_retry',
    attempt: 1,
    retry_delay_ms: 24_460,
    ...more,
  });
  function waits(more: object): readonly DecoderEvent[] {
    const writer = new ClaudeWriter(new Set());
    writer.write({ ...plainLaunch(null), text: 'Hi', history: [] }, 1);
    return [...new ClaudeDecoder(writer).read(text(retry(more)))];
  }

  it.each([
    ['quota', { error_status: 429, error: 'rate_limit' }],
    ['overloaded', { error_status: 529, error: 'overloaded' }],
  ])('reports %s and the time', (reason, more) => {
    const message = 'the model CLI reports: the API of the model failed, and the next retry would be in 25 s';
    expect(waits(more)).toMatchObject([{ type: 'waiting', ms: 24_460, failure: { reason, message } }]);
  });

  it('reports nothing if only the connection was lost', () => {
    expect(waits({ error_status: null, error: 'unknown' })).toEqual([]);
  });
});

it('A refusal of the model has a separate reason, and the words of the CLI', () => {
  const words = "API Error: Opus 5.5's safeguards flagged this message.\n\nTry rephrasing";
  const told = { stop_reason: 'refusal', terminal_reason: 'api_error' };
  expect(read(failure(words, told)).at(-1)).toEqual({
    type: 'turn-failed',
    reason: 'refused',
    message: "the model CLI reports: API Error: Opus 5.5's safeguards flagged this message.",
  });
});

describe('The rate limit events of claude', () => {
  const event = (info: object) => ({ type: 'rate_limit_event', rate_limit_info: info, uuid: 'u', session_id: 's' });
  const rejected = { status: 'rejected', resetsAt: 1_795_325_106, rateLimitType: 'five_hour', isUsingOverage: false };
  const resetsAt = 1_795_325_106_000;
  const refused = (info: object | null, more: object = { api_error_status: 429 }, error = 'rate_limit') =>
    read((info === null ? '' : text(event(info))) + failure('You have hit your limit', more, error)).at(-1);

  it('are reported by window, including those about to be exhausted', () => {
    const line = event({
      status: 'allowed_warning',
      resetsAt: 1_795_325_104,
      rateLimitType: 'five_hour',
      utilization: 0.92,
      isUsingOverage: false,
      surpassedThreshold: 0.9,
      unifiedWindows: {
        five_hour: { utilization: 0.92, resetsAt: 1_795_325_104, status: 'allowed_warning', surpassedThreshold: 0.9 },
        seven_day: { utilization: 0.4, resetsAt: 1_795_407_904 },
        of_tomorrow: { utilization: 0.1, resetsAt: 1_795_407_904, status: 'of tomorrow' },
      },
    });
    expect(read(text(line))).toEqual([
      {
        type: 'quota-report',
        windows: [
          { name: 'five_hour', status: 'warning', utilization: 0.92, resetsAt: 1_795_325_104_000 },
          { name: 'seven_day', status: 'allowed', utilization: 0.4, resetsAt: 1_795_407_904_000 },
          { name: 'other', status: 'allowed', utilization: 0.1, resetsAt: 1_795_407_904_000 },
        ],
      },
    ]);
  });

  it('are reported without separate windows for older versions', () => {
    const windows = [{ name: 'five_hour', status: 'rejected', utilization: null, resetsAt }];
    expect(read(text(event(rejected)))).toEqual([{ type: 'quota-report', windows }]);
    expect(read(text(event({ status: 'allowed' })))).toEqual([{ type: 'quota-report', windows: [] }]);
    expect(read(text(event({ status: 7, resetsAt: 'soon', unifiedWindows: [7] })))).toHaveLength(1);
    expect(read(text({ type: 'rate_limit_event' }))).toEqual([]);
  });

  it.each<[string, object | null, object | undefined, string | undefined, object]>([
    ['the whole account until its reset', rejected, undefined, undefined, { scope: 'account', resetsAt }],
    [
      'one model until its reset',
      { ...rejected, rateLimitType: 'seven_day_opus' },
      undefined,
      undefined,
      { scope: 'model', resetsAt },
    ],
    ['one model, where only the error tells', null, undefined, undefined, { scope: 'model', resetsAt: null }],
    [
      'one model, where no window is named',
      { status: 'rejected' },
      undefined,
      undefined,
      { scope: 'model', resetsAt: null },
    ],
    [
      'one model, where the closed window is paid for',
      { ...rejected, isUsingOverage: true },
      undefined,
      undefined,
      { scope: 'model', resetsAt: null },
    ],
    [
      'the whole account, where it has no money left',
      null,
      { api_error_status: 400 },
      'billing_error',
      { scope: 'account', resetsAt: null },
    ],
  ])('show whether the account or the model is limited: %s', (_, info, more, error, quota) => {
    expect(refused(info, more, error)).toMatchObject({ type: 'turn-failed', reason: 'quota', quota });
  });

  it('apply to later failures too, because claude sends them only on changes', () => {
    const events = read(text(event(rejected)), failure('limit', {}, 'rate_limit'), failure('limit', {}, 'rate_limit'));
    expect(events.at(-1)).toMatchObject({ quota: { scope: 'account', resetsAt } });
  });

  it('do not affect other failures', () => {
    expect(refused(rejected, { api_error_status: 529 }, 'overloaded')).not.toHaveProperty('quota');
  });
});

describe('A claude process that exits', () => {
  const exit = (more: Partial<Exit>): Exit => ({ code: 1, signal: null, stderr: '', ...more });

  function crash(output: string, more: Partial<Exit>): readonly DecoderEvent[] {
    const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
    decoder.read(output);
    return decoder.exit(exit(more));
  }

  it('has crashed, with its stderr beside the message', () => {
    const stderr = "Warning: x\nerror: unknown option '--x'";
    const message = 'the model CLI exited with code 1';
    expect(crash(text(init, start, delta('Hi')), { stderr: `${stderr}\n` })).toEqual([
      { type: 'turn-failed', reason: 'crashed', message, stderr },
    ]);
  });

  it('has crashed, with the signal that ended it', () => {
    const message = 'the model CLI was ended by SIGKILL';
    expect(crash('', { code: null, signal: 'SIGKILL' })).toEqual([{ type: 'turn-failed', reason: 'crashed', message }]);
  });

  it('has answered if only the newline after its result was missing', () => {
    expect(crash(turn.slice(0, -1), { code: 0 })).toEqual([end]);
  });
});

describe('The usage of a claude turn before its end', () => {
  const counted = stream({ type: 'message_start', message: { model: 'claude-test', usage } });
  const ends = stream({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } });
  const soFar = (...lines: readonly object[]) => {
    const decoder = new ClaudeDecoder(new ClaudeWriter(new Set()));
    decoder.begin(1);
    decoder.read(text(...lines));
    return decoder.usedSoFar;
  };

  it('is that of the messages received so far', () => {
    expect(soFar(init)).toBeNull();
    expect(soFar(init, counted, delta('Hi'))).toMatchObject({ inputTokens: 321, outputTokens: 0 });
    expect(soFar(init, counted, delta('Hi'), ends)).toMatchObject({ inputTokens: 321, outputTokens: 9 });
  });

  it('includes the cost of a turn that failed', () => {
    const failed = result({ is_error: true, subtype: 'error_during_execution' });
    expect(soFar(init, counted, delta('Hi'), ends, failed)).toMatchObject({ outputTokens: 9, costUsd: 0.1 });
    expect(soFar(init, failed)).toMatchObject({ inputTokens: 321, outputTokens: 4, costUsd: 0.1 });
  });
});

describe('The step that claude must finish now', () => {
  const ends = (stop_reason: string, stop_sequence?: string) =>
    stream({ type: 'message_delta', delta: { stop_reason, stop_sequence }, usage: { output_tokens: 9 } });
  const said = [init, start, open('text'), delta('Once'), stop];
  const answer = { type: 'control_response', response: { subtype: 'success', request_id: 'x', response: {} } };

  /** Returns a decoder at the begin of a turn, with what it reads. */
  function begun(more: object = {}, hasOwnTools = false) {
    const writer = new ClaudeWriter(new Set());
    const decoder = new ClaudeDecoder(writer, hasOwnTools);
    const begin = (number: number) => {
      writer.write({ ...plainLaunch(null), text: 'Hi', history: [], ...more }, number);
      decoder.begin(number);
    };
    begin(1);
    const stepAfter = (...lines: readonly object[]) => {
      for (const _ of decoder.read(text(...lines)));
      return decoder.awaited;
    };
    return { begin, stepAfter };
  }

  it('is its start, and then the prompt of each turn, until it writes about the turn', () => {
    const { begin, stepAfter } = begun();
    expect(stepAfter()?.name).toBe('start');
    expect(stepAfter(answer)?.name).toBe('prompt');
    expect(stepAfter(init)).toBeNull();
    expect(stepAfter(start, open('text'), delta('Hi'), stop, ends('end_turn'), result())).toBeNull();
    begin(2);
    expect(stepAfter(answer)?.name).toBe('prompt');
    expect(stepAfter(init)).toBeNull();
  });

  it('is the end of its turn after a text that ends the answer, which counts as the answer', () => {
    const { stepAfter } = begun();
    expect(stepAfter(...said)).toBeNull();
    const whole = stepAfter(ends('end_turn'));
    const usage = { outputTokens: 9, costUsd: null };
    expect(whole).toMatchObject({ name: 'end of the turn', late: { type: 'turn-end', text: null, usage } });
    expect(whole?.late).not.toHaveProperty('stopSequence');
    expect(stepAfter(assistant('Once'), result())).toBeNull();
    expect(begun().stepAfter(...said, ends('stop_sequence', 'x'))?.late).toMatchObject({ stopSequence: 'x' });
  });

  it.each<[string, readonly object[], Parameters<typeof begun>]>([
    ['the model begins another message', [...said, ends('end_turn'), start], []],
    ['the API pauses the turn', [...said, ends('pause_turn')], []],
    ['the message has no text', [init, start, open('thinking'), stop, ends('end_turn')], []],
    ['the answer must fit a schema', [...said, ends('end_turn')], [{ schema: '{}' }]],
    ['the operator has opened tools', [...said, ends('end_turn')], [{}, true]],
  ])('is none if %s, because the model may take its time', (_, lines, manner) => {
    expect(begun(...manner).stepAfter(...lines)).toBeNull();
  });
});
