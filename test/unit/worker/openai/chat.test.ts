import { RelayError } from '../../../../src/shared/errors.js';
import type { CompletedAnswer, Ending } from '../../../../src/worker/jobs/run-job.js';
import { chatCompletionFormat } from '../../../../src/worker/openai/chat.js';
import { jobDone } from '../../../support/job-records.js';
import { streamed } from '../../../support/openai-door.js';

const opening = { requestId: 'r1', model: 'eliza', tool: null };
const usage = { input: 10, output: 5, cacheRead: 4, cacheWrite: 1 };
const toldUsage = {
  prompt_tokens: 10,
  completion_tokens: 5,
  total_tokens: 15,
  prompt_tokens_details: { cached_tokens: 4 },
};

function told(differences: Partial<CompletedAnswer> = {}): CompletedAnswer {
  return {
    ...opening,
    text: 'good day',
    value: undefined,
    ending: 'whole',
    stopSequence: null,
    usage,
    end: jobDone(),
    ...differences,
  };
}

function chunk(delta: object, finish: string | null = null) {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  return { id: 'chatcmpl-r1', object: 'chat.completion.chunk', created: 7, model: 'eliza', choices };
}

describe('A chat completion', () => {
  it('is as the OpenAI API has it', () => {
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

  it('is a call of the function that was asked for', () => {
    const call = { id: 'call_r1', type: 'function', function: { name: 'f', arguments: '{}' } };
    expect(chatCompletionFormat(7, false).body(told({ tool: 'f', text: '{}', ending: 'tool-call' }))).toMatchObject({
      choices: [{ message: { content: null, tool_calls: [call] }, finish_reason: 'tool_calls' }],
    });
  });

  it.each<[Ending, string]>([
    ['whole', 'stop'],
    ['stop-sequence', 'stop'],
    ['refusal', 'content_filter'],
  ])('that ended as %s has finished for %s', (ending, reason) => {
    expect(chatCompletionFormat(7, false).body(told({ ending }))).toMatchObject({
      choices: [{ finish_reason: reason }],
    });
  });

  it('is no call where the model refuses one', () => {
    const { choices } = chatCompletionFormat(7, false).body(told({ tool: 'f', text: '', ending: 'refusal' })) as {
      choices: readonly object[];
    };
    expect(choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: '', refusal: null },
        logprobs: null,
        finish_reason: 'content_filter',
      },
    ]);
  });
});

describe('A streamed chat completion', () => {
  it('is chunks without names', () => {
    const stream = chatCompletionFormat(7, false).stream(opening);
    const text = stream.begin() + stream.delta('good ') + stream.delta('day') + stream.end(told());
    expect(streamed(text)).toEqual([
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: 'good ' }),
      chunk({ content: 'day' }),
      chunk({}, 'stop'),
      'data: [DONE]',
    ]);
  });

  it('tells its usage where that is wanted', () => {
    const stream = chatCompletionFormat(7, true).stream(opening);
    expect(streamed(stream.end(told()))).toEqual([
      chunk({}, 'stop'),
      { ...chunk({}), choices: [], usage: toldUsage },
      'data: [DONE]',
    ]);
  });

  it('is a call that begins with its arguments', () => {
    const asCall = { ...opening, tool: 'f' };
    const stream = chatCompletionFormat(7, false).stream(asCall);
    const text =
      stream.begin() +
      stream.delta('{"a"') +
      stream.delta(':1}') +
      stream.end(told({ tool: 'f', ending: 'tool-call' }));
    const call = { index: 0, id: 'call_r1', type: 'function', function: { name: 'f', arguments: '' } };
    expect(streamed(text)).toEqual([
      chunk({ role: 'assistant', content: null }),
      chunk({ tool_calls: [call] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
      chunk({}, 'tool_calls'),
      'data: [DONE]',
    ]);
  });

  it('has no call where the model refuses one', () => {
    const stream = chatCompletionFormat(7, false).stream({ ...opening, tool: 'f' });
    const text = stream.begin() + stream.end(told({ tool: 'f', text: '', ending: 'refusal' }));
    expect(streamed(text)).toEqual([
      chunk({ role: 'assistant', content: null }),
      chunk({}, 'content_filter'),
      'data: [DONE]',
    ]);
  });

  it('ends with its error, and no more', () => {
    const failure = chatCompletionFormat(7, false).stream(opening).failure(new RelayError('timeout', 'too long'));
    const error = { message: 'too long', type: 'api_error', code: 'timeout', param: null };
    expect(streamed(failure)).toEqual([{ error }]);
  });
});
