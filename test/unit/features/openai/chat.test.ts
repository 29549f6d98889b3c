import { chatCompletionFormat } from '../../../../src/features/openai/chat.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { CompletedAnswer, Ending } from '../../../../src/worker/jobs/answer-format.js';
import { streamed } from '../../../support/doors/sdk-door.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const opening = { requestId: 'r1', model: 'eliza', forms: {}, hasTools: false, hasThoughts: false };
const withTools = { ...opening, hasTools: true };
const call = { id: 'c1', name: 'f', input: '{"a":1}', isCustom: false };
const custom = { id: 'c2', name: 'run', input: 'ls', isCustom: true };
const usage = { input: 10, output: 5, cacheRead: 4, cacheWrite: 1 };
const tokens = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const toldUsage = { ...tokens, prompt_tokens_details: { cached_tokens: 4 } };

function told(differences: Partial<CompletedAnswer> = {}): CompletedAnswer {
  const text = { text: 'good day', hasText: true, value: undefined, parts: [], calls: [] };
  return { ...opening, ...text, ending: 'whole', stopSequence: null, usage, end: jobDone(), ...differences };
}

function chunk(delta: object, finish: string | null = null) {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  return { id: 'chatcmpl-r1', object: 'chat.completion.chunk', created: 7, model: 'eliza', choices };
}

const thoughts = ['Hm', '', 'Well'].map((text) => ({ type: 'thought', text }) as const);

describe('A chat completion', () => {
  it('has the thoughts of the model next to its text, and next to calls', () => {
    const message = { content: 'good day', reasoning_content: 'Hm\n\nWell' };
    const format = chatCompletionFormat(7, false);
    expect(format.body(told({ parts: thoughts }))).toMatchObject({ choices: [{ message }] });
    expect(format.body(told({ parts: thoughts, calls: [call] }))).toMatchObject({ choices: [{ message }] });
  });

  it('streams thoughts before the text, separated by blank lines', () => {
    const stream = chatCompletionFormat(7, false).stream({ ...opening, hasThoughts: true });
    const text = ['H', 'm'].map((piece) => stream.formatEvent({ type: 'thought-delta', text: piece }));
    text.push(
      stream.formatEvent({ type: 'thought-end' }),
      stream.formatEvent({ type: 'thought-end' }),
      stream.formatEvent({ type: 'thought-delta', text: 'Well' }),
    );
    text.push(stream.formatEvent({ type: 'thought-end', signature: 'proof' }), stream.formatEvent(textDelta('Hi')));
    expect(streamed(text.join(''))).toEqual([
      chunk({ reasoning_content: 'H' }),
      chunk({ reasoning_content: 'm' }),
      chunk({ reasoning_content: '\n\nWell' }),
      chunk({ content: 'Hi' }),
    ]);
  });

  it('matches the OpenAI API', () => {
    const message = { role: 'assistant', content: 'good day', refusal: null };
    expect(chatCompletionFormat(7, false).body(told())).toEqual({
      id: 'chatcmpl-r1',
      object: 'chat.completion',
      created: 7,
      model: 'eliza',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      usage: toldUsage,
    });
  });

  it('has the calls of functions and of custom tools, next to its text', () => {
    const calls = [
      { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
      { id: 'c2', type: 'custom', custom: { name: 'run', input: 'ls' } },
    ];
    const answer = told({ calls: [call, custom], ending: 'tool-call' });
    expect(chatCompletionFormat(7, false).body(answer)).toMatchObject({
      choices: [{ message: { content: 'good day', tool_calls: calls }, finish_reason: 'tool_calls' }],
    });
    expect(chatCompletionFormat(7, false).body({ ...answer, text: '', hasText: false })).toMatchObject({
      choices: [{ message: { content: null } }],
    });
  });

  it('has a legacy function call', () => {
    const made = { name: 'f', arguments: '{"a":1}' };
    expect(chatCompletionFormat(7, false, true).body(told({ calls: [call], ending: 'tool-call' }))).toMatchObject({
      choices: [{ message: { function_call: made }, finish_reason: 'function_call' }],
    });
  });

  it.each<[Ending, string]>([
    ['whole', 'stop'],
    ['stop-sequence', 'stop'],
    ['refusal', 'content_filter'],
    ['length', 'length'],
  ])('that ended as %s has the finish reason %s', (ending, reason) => {
    const { choices } = chatCompletionFormat(7, false).body(told({ ending })) as { choices: unknown };
    expect(choices).toMatchObject([{ finish_reason: reason }]);
  });
});

describe('A streamed chat completion', () => {
  it('consists of chunks without event names', () => {
    const stream = chatCompletionFormat(7, false).stream(opening);
    const text =
      stream.formatBeginning() +
      stream.formatEvent(textDelta('good ')) +
      stream.formatEvent(textDelta('day')) +
      stream.formatEnd(told());
    expect(streamed(text)).toEqual([
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: 'good ' }),
      chunk({ content: 'day' }),
      chunk({}, 'stop'),
      'data: [DONE]',
    ]);
  });

  it('contains its usage if requested', () => {
    const stream = chatCompletionFormat(7, true).stream(opening);
    expect(streamed(stream.formatEnd(told()))).toEqual([
      { ...chunk({}, 'stop'), usage: null },
      { ...chunk({}), choices: [], usage: toldUsage },
      'data: [DONE]',
    ]);
  });

  it('has each call with its index, and the input of a custom tool in one piece', () => {
    const stream = chatCompletionFormat(7, false).stream(withTools);
    const text = [
      ...[stream.formatBeginning(), stream.formatEvent(textDelta('Well'))],
      ...[
        stream.formatEvent({ type: 'call-start', ...call }),
        stream.formatEvent({ type: 'call-delta', text: '{"a"' }),
        stream.formatEvent({ type: 'call-delta', text: ':1}' }),
      ],
      ...[
        stream.formatEvent({ type: 'call-start', ...custom }),
        stream.formatEvent({ type: 'call-delta', text: '{"inp' }),
        stream.formatEvent({ type: 'call-delta', text: 'ut":"ls"}' }),
      ],
      stream.formatEnd(told({ ending: 'tool-call' })),
    ].join('');
    const begun = { index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '' } };
    expect(streamed(text)).toEqual([
      chunk({ role: 'assistant', content: null }),
      chunk({ content: 'Well' }),
      chunk({ tool_calls: [begun] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
      chunk({ tool_calls: [{ index: 1, id: 'c2', type: 'custom', custom: { name: 'run', input: '' } }] }),
      chunk({ tool_calls: [{ index: 1, custom: { input: 'ls' } }] }),
      chunk({}, 'tool_calls'),
      'data: [DONE]',
    ]);
  });

  it('has an empty object for a call without input', () => {
    const stream = chatCompletionFormat(7, false).stream(withTools);
    const text = stream.formatEvent({ type: 'call-start', ...call }) + stream.formatEnd(told({ ending: 'tool-call' }));
    expect(streamed(text)[1]).toEqual(chunk({ tool_calls: [{ index: 0, function: { arguments: '{}' } }] }));
  });

  it('has a legacy function call', () => {
    const stream = chatCompletionFormat(7, false, true).stream(withTools);
    const text =
      stream.formatEvent({ type: 'call-start', ...call }) +
      stream.formatEvent({ type: 'call-delta', text: '{}' }) +
      stream.formatEnd(told({ ending: 'tool-call' }));
    expect(streamed(text)).toEqual([
      chunk({ function_call: { name: 'f', arguments: '' } }),
      chunk({ function_call: { arguments: '{}' } }),
      chunk({}, 'function_call'),
      'data: [DONE]',
    ]);
  });

  it('ends with its error', () => {
    const failure = chatCompletionFormat(7, false).stream(opening).formatFailure(new RelayError('timeout', 'too long'));
    const error = { message: 'too long', type: 'api_error', code: 'timeout', param: null };
    expect(streamed(failure)).toEqual([{ error }]);
  });
});
