import { loadedBody, ollamaChatFormat, ollamaGenerateFormat } from '../../../../src/features/ollama/answer.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { CompletedAnswer } from '../../../../src/worker/jobs/answer-format.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const clock = new FakeClock();
const created_at = new Date(clock.now()).toISOString();
const opening = { requestId: 'r1', model: 'eliza', forms: {}, hasTools: false, hasThoughts: true };
const call = { id: 'c1', name: 'f', input: '{"a":1}', isCustom: false };
const usage = { input: 10, output: 5, cacheRead: 4, cacheWrite: 1 };
const end = jobDone({ queueMs: 2, executionMs: 0.5 });
const durations = { total_duration: 2_500_000, load_duration: 2_000_000, eval_duration: 500_000 };
const counted = { ...durations, prompt_eval_duration: 1, prompt_eval_count: 10, eval_count: 5 };
const thoughts = ['Hm', '', 'Well'].map((text) => ({ type: 'thought', text }) as const);

function told(differences: Partial<CompletedAnswer> = {}): CompletedAnswer {
  const text = { text: 'good day', hasText: true, value: undefined, parts: [], calls: [] };
  return { ...opening, ...text, ending: 'whole', stopSequence: null, usage, end, ...differences };
}

function linesOf(...pieces: (string | undefined)[]): unknown[] {
  const lines = pieces.join('').split('\n');
  expect(lines.pop()).toBe('');
  return lines.map((line) => JSON.parse(line) as unknown);
}

const head = { model: 'eliza', created_at };

describe('An answer of the Ollama API', () => {
  it.each([
    ['whole', 'stop'],
    ['stop-sequence', 'stop'],
    ['tool-call', 'stop'],
    ['length', 'length'],
  ] as const)('is done, for the ending %s with the reason %s', (ending, reason) => {
    const message = { role: 'assistant', content: 'good day' };
    const done = { done: true, done_reason: reason, ...counted };
    expect(ollamaChatFormat(clock).body(told({ ending }))).toEqual({ ...head, message, ...done });
  });

  it('has the thoughts of the model next to its text', () => {
    const [chat, generate] = [ollamaChatFormat(clock), ollamaGenerateFormat(clock)];
    const thinking = told({ parts: thoughts });
    expect(chat.body(thinking)).toMatchObject({ message: { content: 'good day', thinking: 'Hm\n\nWell' } });
    expect(generate.body(thinking)).toMatchObject({ response: 'good day', thinking: 'Hm\n\nWell' });
    expect(JSON.stringify([chat.body(told()), generate.body(told())])).not.toContain('thinking');
  });

  it('has the input of a call as an object, whatever the model wrote', () => {
    const calls = [call, { ...call, id: 'c2', input: '{' }];
    const tool_calls = [
      { id: 'c1', function: { index: 0, name: 'f', arguments: { a: 1 } } },
      { id: 'c2', function: { index: 1, name: 'f', arguments: {} } },
    ];
    expect(ollamaChatFormat(clock).body(told({ calls }))).toMatchObject({ message: { tool_calls } });
  });

  it('has no duration of 0, because programs divide by it', () => {
    const instant = told({ end: jobDone({ queueMs: 0, executionMs: 0 }) });
    const least = { total_duration: 2, load_duration: 1, prompt_eval_duration: 1, eval_duration: 1 };
    expect(ollamaChatFormat(clock).body(instant)).toMatchObject(least);
  });

  it('shows whether a model was loaded or unloaded', () => {
    const done = { ...head, done: true };
    expect(loadedBody('chat', 'eliza', false, clock)).toMatchObject({ ...done, done_reason: 'load' });
    expect(loadedBody('generate', 'eliza', true, clock)).toEqual({ ...done, response: '', done_reason: 'unload' });
  });
});

describe('A stream of the Ollama API', () => {
  it('has thoughts before the text, separated by blank lines', () => {
    const stream = ollamaChatFormat(clock).stream(opening);
    const lines = linesOf(
      ...[
        stream.formatEvent({ type: 'thought-delta', text: 'H' }),
        stream.formatEvent({ type: 'thought-delta', text: 'm' }),
        stream.formatEvent({ type: 'thought-end' }),
        stream.formatEvent({ type: 'thought-end' }),
      ],
      ...[
        stream.formatEvent({ type: 'thought-delta', text: 'Well' }),
        stream.formatEvent({ type: 'thought-end', signature: 'proof' }),
        stream.formatEvent(textDelta('Hi')),
      ],
    );
    const piece = (said: object) => ({ ...head, message: { role: 'assistant', content: '', ...said }, done: false });
    const thought = ['H', 'm', '\n\nWell'].map((thinking) => piece({ thinking }));
    expect(lines).toEqual([...thought, piece({ content: 'Hi' })]);
  });

  it('has the calls in a separate line before the last one', () => {
    const stream = ollamaChatFormat(clock).stream(opening);
    const lines = linesOf(stream.formatEnd(told({ calls: [call], ending: 'tool-call', text: '' })));
    expect(lines).toMatchObject([
      { message: { content: '', tool_calls: [{ id: 'c1' }] }, done: false },
      { message: { content: '' }, done: true, done_reason: 'stop', ...counted },
    ]);
  });

  it('ends with an error line after a failure, and sends whitespace while it is idle', () => {
    const stream = ollamaGenerateFormat(clock).stream(opening);
    const failed = stream.formatFailure(new RelayError('timeout', 'took too long'));
    expect(linesOf(stream.ping?.(), stream.formatEvent(textDelta('a')), stream.ping?.(), failed)).toEqual([
      { ...head, response: 'a', done: false },
      { error: 'took too long' },
    ]);
  });
});
