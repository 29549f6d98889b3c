import { frameOf, responseFormat } from '../../../../src/features/openai/responses-answer.js';
import { RelayError } from '../../../../src/shared/errors.js';
import { type CompletedAnswer, partsIn } from '../../../../src/worker/jobs/answer-format.js';
import { streamed } from '../../../support/doors/sdk-door.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const opening = { requestId: 'r1', model: 'eliza', forms: {}, hasTools: false, hasThoughts: false };
const withTools = { ...opening, hasTools: true };
const made = { id: 'c1', name: 'f', input: '{}', isCustom: false };
const custom = { id: 'c2', name: 'run', namespace: 'shell', input: 'ls', isCustom: true };
const usage = { input: 10, output: 5, cacheRead: 4, cacheWrite: 1 };
const toldUsage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 1 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 15,
};
const nulls = [
  ...['access_programs', 'completed_at', 'error', 'incomplete_details', 'instructions', 'max_output_tokens', 'usage'],
  ...['max_tool_calls', 'previous_response_id', 'prompt_cache_key', 'safety_identifier'],
].map((name) => [name, null] as const);
const response = {
  ...{ ...Object.fromEntries(nulls), id: 'resp_r1', object: 'response', created_at: 7, model: 'eliza', output: [] },
  ...{ background: false, store: false, metadata: {}, service_tier: 'default', truncation: 'disabled' },
  ...{ frequency_penalty: 0, presence_penalty: 0, temperature: 1, top_p: 1, top_logprobs: 0 },
  ...{ tools: [], tool_choice: 'auto', parallel_tool_calls: false, reasoning: { effort: null, summary: null } },
  text: { format: { type: 'text' } },
};

function told(differences: Partial<CompletedAnswer> = {}): CompletedAnswer {
  const { text = 'good day', hasText = true, calls = [], end } = differences;
  const slices = hasText || calls.length === 0 ? [text] : [];
  const parts = partsIn(end ?? {}, slices, calls);
  const answer = { ...opening, calls, parts, text, hasText, value: undefined, stopSequence: null, usage };
  return { ...answer, ending: 'whole', end: jobDone(), ...differences };
}

interface Sent {
  readonly type: string;
  readonly response?: object;
}

function part(text: string) {
  return { type: 'output_text', annotations: [], logprobs: [], text };
}

function message(status: string, ...content: object[]) {
  return { id: 'msg_r1', type: 'message', status, role: 'assistant', content };
}

function call(status: string, text: string) {
  return { id: 'fc_r1', type: 'function_call', status, call_id: 'c1', name: 'f', arguments: text };
}

function run(status: string, input: string) {
  return { id: 'fc_r1_1', type: 'custom_tool_call', status, call_id: 'c2', name: 'run', namespace: 'shell', input };
}

/** Events of the message as a whole: its start, its deltas, and its end with these pieces. */
function messageEvents(...pieces: readonly string[]): (readonly [string, object])[] {
  const text = pieces.join('');
  return [
    ['output_item.added', { ...first, item: message('in_progress') }],
    ['content_part.added', { ...ofText, part: part('') }],
    ...pieces.map((delta) => ['output_text.delta', { ...ofText, delta, logprobs: [] }] as const),
    ['output_text.done', { ...ofText, text, logprobs: [] }],
    ['content_part.done', { ...ofText, part: part(text) }],
    ['output_item.done', { ...first, item: message('completed', part(text)) }],
  ];
}

/** First and last events of a stream. */
function startEvents(differences: object = {}): (readonly [string, object])[] {
  const begun = { response: { ...response, ...differences, status: 'in_progress' } };
  return [
    ['created', begun],
    ['in_progress', begun],
  ];
}

function completed(output: readonly object[], differences: object = {}): object {
  return { ...response, ...differences, completed_at: 7, status: 'completed', output, usage: toldUsage };
}

/** Returns the events with their expected sequence numbers. */
function numbered(...events: readonly (readonly [string, object])[]) {
  return events.map(([type, content], index) => ({ type: `response.${type}`, sequence_number: index, ...content }));
}

const ofText = { item_id: 'msg_r1', output_index: 0, content_index: 0 };
const first = { output_index: 0 };

describe('A response', () => {
  it('matches the OpenAI API', () => {
    expect(responseFormat(frameOf(7)).body(told())).toEqual(completed([message('completed', part('good day'))]));
  });

  it('has calls as separate items after the message', () => {
    const answer = { ...withTools, calls: [made, custom], ending: 'tool-call' } as const;
    const items = [call('completed', '{}'), run('completed', 'ls')];
    const whole = completed([message('completed', part('good day')), ...items], { parallel_tool_calls: true });
    expect(responseFormat(frameOf(7)).body(told(answer))).toEqual(whole);
    const silent = told({ ...answer, text: '', hasText: false });
    expect(responseFormat(frameOf(7)).body(silent)).toMatchObject({ output: items });
  });

  it.each([
    ['refusal', 'content_filter'],
    ['length', 'max_output_tokens'],
  ] as const)('is incomplete after a %s', (ending, reason) => {
    expect(responseFormat(frameOf(7)).body(told({ ending, text: 'I' }))).toMatchObject({
      ...{ status: 'incomplete', incomplete_details: { reason } },
      output: [message('incomplete', part('I'))],
    });
  });
});

describe('A streamed response', () => {
  it('consists of named and numbered events, with the whole text at the end', () => {
    const stream = responseFormat(frameOf(7)).stream(opening);
    const text =
      stream.formatBeginning() +
      stream.formatEvent(textDelta('good ')) +
      stream.formatEvent(textDelta('day')) +
      stream.formatEnd(told());
    expect(streamed(text)).toEqual(
      numbered(...startEvents(), ...messageEvents('good ', 'day'), [
        'completed',
        { response: completed([message('completed', part('good day'))]) },
      ]),
    );
  });

  it('has an item for the text and one for each call, as they arrive', () => {
    const stream = responseFormat(frameOf(7)).stream(withTools);
    const text = [
      stream.formatBeginning(),
      stream.formatEvent(textDelta('Well')),
      stream.formatEvent({ type: 'call-start', ...made }),
      stream.formatEvent({ type: 'call-delta', text: '{}' }),
      stream.formatEvent({ type: 'call-start', ...custom }),
      stream.formatEvent({ type: 'call-delta', text: '{"input":"ls"}' }),
      stream.formatEnd(told({ ...withTools, calls: [made, custom], ending: 'tool-call' })),
    ].join('');
    const parallel = { parallel_tool_calls: true };
    const ofCall = { item_id: 'fc_r1', output_index: 1 };
    const ofRun = { item_id: 'fc_r1_1', output_index: 2 };
    const items = [message('completed', part('Well')), call('completed', '{}'), run('completed', 'ls')];
    expect(streamed(text)).toEqual(
      numbered(
        ...startEvents(parallel),
        ...messageEvents('Well'),
        ['output_item.added', { output_index: 1, item: call('in_progress', '') }],
        ['function_call_arguments.delta', { ...ofCall, delta: '{}' }],
        ['function_call_arguments.done', { ...ofCall, name: 'f', arguments: '{}' }],
        ['output_item.done', { output_index: 1, item: items[1] }],
        ['output_item.added', { output_index: 2, item: run('in_progress', '') }],
        ['custom_tool_call_input.delta', { ...ofRun, delta: 'ls' }],
        ['custom_tool_call_input.done', { ...ofRun, input: 'ls' }],
        ['output_item.done', { output_index: 2, item: items[2] }],
        ['completed', { response: completed(items, parallel) }],
      ),
    );
  });

  it('is one message if the model could call tools and does not', () => {
    const stream = responseFormat(frameOf(7)).stream(withTools);
    const parallel = { parallel_tool_calls: true };
    const text =
      stream.formatBeginning() + stream.formatEvent(textDelta('good day')) + stream.formatEnd(told(withTools));
    const whole = completed([message('completed', part('good day'))], parallel);
    expect(streamed(text)).toEqual(
      numbered(...startEvents(parallel), ...messageEvents('good day'), ['completed', { response: whole }]),
    );
    const silent = responseFormat(frameOf(7)).stream(withTools);
    const ended = streamed(
      silent.formatBeginning() + silent.formatEnd(told({ ...withTools, text: '', hasText: false })),
    ) as Sent[];
    expect(ended.at(-1)?.response).toMatchObject({ output: [message('completed', part(''))] });
  });

  it('is incomplete if the model refuses', () => {
    const stream = responseFormat(frameOf(7)).stream(opening);
    stream.formatBeginning();
    const events = streamed(stream.formatEnd(told({ text: '', ending: 'refusal' })));
    const details = { status: 'incomplete', incomplete_details: { reason: 'content_filter' } };
    expect(events.at(-1)).toMatchObject({ type: 'response.incomplete', sequence_number: 7, response: details });
  });

  it('ends with its error if it fails', () => {
    const stream = responseFormat(frameOf(7)).stream(opening);
    stream.formatBeginning();
    const error = { message: 'too long', type: 'api_error', code: 'timeout', param: null };
    expect(streamed(stream.formatFailure(new RelayError('timeout', 'too long')))).toEqual([
      { type: 'error', sequence_number: 4, error },
      {
        type: 'response.failed', // the only end of a failed response that codex recognizes
        sequence_number: 5,
        response: expect.objectContaining({ status: 'failed', error: { code: 'timeout', message: 'too long' } }),
      },
    ]);
  });

  it.each([withTools, { ...opening, hasThoughts: true }])(
    'starts an item before it fails, so that no SDK retries its request',
    (mixed) => {
      const stream = responseFormat(frameOf(7)).stream(mixed);
      const types = (text: string) => (streamed(text) as Sent[]).map(({ type }) => type);
      expect(types(stream.formatBeginning())).toEqual(['response.created', 'response.in_progress']);
      const failure = new RelayError('timeout', 'too long');
      const item = ['response.output_item.added', 'response.content_part.added'];
      expect(types(stream.formatFailure(failure))).toEqual([...item, 'error', 'response.failed']);
      const later = responseFormat(frameOf(7)).stream(mixed);
      later.formatBeginning();
      later.formatEvent(textDelta('Well'));
      expect(types(later.formatFailure(failure))).toEqual(['error', 'response.failed']);
    },
  );
});

describe('A response with thoughts', () => {
  const summary = (text: string) => ({ type: 'summary_text', text });
  const reasoning = (id: string, ...texts: string[]) => ({ id, type: 'reasoning', summary: texts.map(summary) });
  const thinks = { ...withTools, hasThoughts: true };
  const thoughts = [
    { text: 'Hm', signature: 'proof', at: 0, calls: 0 },
    { text: '', at: null, calls: 0 },
  ];
  const items = [
    reasoning('rs_r1', 'Hm'),
    message('completed', part('good day')),
    reasoning('rs_r1_1'),
    call('completed', '{}'),
  ];

  it('has an item for each thought, in its position', () => {
    const answer = told({ ...thinks, calls: [made], ending: 'tool-call', end: jobDone({ thoughts }) });
    expect(responseFormat(frameOf(7)).body(answer)).toMatchObject({ output: items });
  });

  it('streams them with their summaries, as the same items', () => {
    const stream = responseFormat(frameOf(7)).stream(thinks);
    const text = [
      stream.formatBeginning(),
      stream.formatEvent({ type: 'thought-delta', text: 'H' }),
      stream.formatEvent({ type: 'thought-delta', text: 'm' }),
      stream.formatEvent({ type: 'thought-end', signature: 'proof' }),
      stream.formatEvent(textDelta('good day')),
      stream.formatEvent({ type: 'thought-end' }),
      stream.formatEvent({ type: 'call-start', ...made }),
      stream.formatEvent({ type: 'call-delta', text: '{}' }),
      stream.formatEnd(told({ ...thinks, calls: [made], ending: 'tool-call', end: jobDone({ thoughts }) })),
    ].join('');
    const ofPart = { item_id: 'rs_r1', output_index: 0, summary_index: 0 };
    const events = streamed(text) as Sent[];
    expect(events.slice(2, 9)).toEqual(
      numbered(
        ...startEvents(),
        ['output_item.added', { output_index: 0, item: reasoning('rs_r1') }],
        ['reasoning_summary_part.added', { ...ofPart, part: summary('') }],
        ['reasoning_summary_text.delta', { ...ofPart, delta: 'H' }],
        ['reasoning_summary_text.delta', { ...ofPart, delta: 'm' }],
        ['reasoning_summary_text.done', { ...ofPart, text: 'Hm' }],
        ['reasoning_summary_part.done', { ...ofPart, part: summary('Hm') }],
        ['output_item.done', { output_index: 0, item: items[0] }],
      ).slice(2),
    );
    expect(events.filter(({ type }) => type === 'response.output_item.added')).toHaveLength(4);
    expect(events.filter(({ type }) => type === 'response.output_item.done')).toMatchObject(
      items.map((item, output_index) => ({ output_index, item })),
    );
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { output: items } });
  });

  it('has a message after them if the model wrote no text, but not if it refuses', () => {
    const only = [{ text: 'Hm', at: 0, calls: 0 }];
    const said = (more: Partial<CompletedAnswer>) => {
      const stream = responseFormat(frameOf(7)).stream({ ...opening, hasThoughts: true });
      stream.formatBeginning();
      stream.formatEvent({ type: 'thought-delta', text: 'Hm' });
      stream.formatEvent({ type: 'thought-end' });
      return (streamed(stream.formatEnd(told({ text: '', hasText: false, ...more }))) as Sent[]).at(-1)?.response;
    };
    const message_ = message('completed', part(''));
    expect(said({ end: jobDone({ thoughts: only }) })).toMatchObject({ output: [items[0], message_] });
    expect(said({ ending: 'refusal' })).toMatchObject({ status: 'incomplete', output: [items[0]] });
  });
});
