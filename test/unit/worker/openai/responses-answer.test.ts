import { RelayError } from '../../../../src/shared/errors.js';
import type { CompletedAnswer } from '../../../../src/worker/jobs/run-job.js';
import { responseFormat } from '../../../../src/worker/openai/responses-answer.js';
import { jobDone } from '../../../support/job-records.js';
import { streamed } from '../../../support/openai-door.js';

const opening = { requestId: 'r1', model: 'eliza', tool: null };
const asCall = { ...opening, tool: 'f' };
const usage = { input: 10, output: 5, cacheRead: 4, cacheWrite: 1 };
const toldUsage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 15,
};
const response = {
  id: 'resp_r1',
  object: 'response',
  created_at: 7,
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model: 'eliza',
  output: [],
  parallel_tool_calls: false,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: false,
  temperature: null,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: null,
  truncation: 'disabled',
  usage: null,
  user: null,
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

function part(text: string) {
  return { type: 'output_text', annotations: [], logprobs: [], text };
}

function message(status: string, ...content: object[]) {
  return { id: 'msg_r1', type: 'message', status, role: 'assistant', content };
}

function call(status: string, text: string) {
  return { id: 'fc_r1', type: 'function_call', status, call_id: 'call_r1', name: 'f', arguments: text };
}

/** Events with the numbers that they should have. */
function numbered(...events: readonly (readonly [string, object])[]) {
  return events.map(([type, content], index) => ({ type: `response.${type}`, sequence_number: index, ...content }));
}

const ofText = { item_id: 'msg_r1', output_index: 0, content_index: 0 };
const ofCall = { item_id: 'fc_r1', output_index: 0 };
const first = { output_index: 0 };

describe('A response', () => {
  it('is as the OpenAI API has it', () => {
    expect(responseFormat(7).body(told())).toEqual({
      ...response,
      status: 'completed',
      output: [message('completed', part('good day'))],
      usage: toldUsage,
    });
  });

  it('is a call of the function that was asked for', () => {
    expect(responseFormat(7).body(told({ tool: 'f', text: '{}', ending: 'tool-call' }))).toEqual({
      ...response,
      status: 'completed',
      tool_choice: { type: 'function', name: 'f' },
      output: [call('completed', '{}')],
      usage: toldUsage,
    });
  });

  it('is incomplete where the model refuses, and a call was never made', () => {
    const details = { status: 'incomplete', incomplete_details: { reason: 'content_filter' } };
    expect(responseFormat(7).body(told({ ending: 'refusal', text: 'I' }))).toMatchObject({
      ...details,
      output: [message('incomplete', part('I'))],
    });
    expect(responseFormat(7).body(told({ ending: 'refusal', tool: 'f', text: '' }))).toMatchObject({
      ...details,
      output: [],
    });
  });
});

describe('A streamed response', () => {
  it('is events that are named and numbered, with the whole text at their end', () => {
    const stream = responseFormat(7).stream(opening);
    const text = stream.begin() + stream.delta('good ') + stream.delta('day') + stream.end(told());
    const begun = { ...response, status: 'in_progress' };
    const item = message('completed', part('good day'));
    expect(streamed(text)).toEqual(
      numbered(
        ['created', { response: begun }],
        ['in_progress', { response: begun }],
        ['output_item.added', { ...first, item: message('in_progress') }],
        ['content_part.added', { ...ofText, part: part('') }],
        ['output_text.delta', { ...ofText, delta: 'good ', logprobs: [] }],
        ['output_text.delta', { ...ofText, delta: 'day', logprobs: [] }],
        ['output_text.done', { ...ofText, text: 'good day', logprobs: [] }],
        ['content_part.done', { ...ofText, part: part('good day') }],
        ['output_item.done', { ...first, item }],
        ['completed', { response: { ...response, status: 'completed', output: [item], usage: toldUsage } }],
      ),
    );
  });

  it('is a call with its arguments', () => {
    const stream = responseFormat(7).stream(asCall);
    const text = stream.begin() + stream.delta('{}') + stream.end(told({ tool: 'f', text: '{}', ending: 'tool-call' }));
    const choice = { tool_choice: { type: 'function', name: 'f' } };
    const begun = { ...response, ...choice, status: 'in_progress' };
    const item = call('completed', '{}');
    expect(streamed(text)).toEqual(
      numbered(
        ['created', { response: begun }],
        ['in_progress', { response: begun }],
        ['output_item.added', { ...first, item: call('in_progress', '') }],
        ['function_call_arguments.delta', { ...ofCall, delta: '{}' }],
        ['function_call_arguments.done', { ...ofCall, name: 'f', arguments: '{}' }],
        ['output_item.done', { ...first, item }],
        ['completed', { response: { ...response, ...choice, status: 'completed', output: [item], usage: toldUsage } }],
      ),
    );
  });

  it('is incomplete where the model refuses', () => {
    const [refused, uncalled] = [opening, asCall].map((each) => {
      const stream = responseFormat(7).stream(each);
      stream.begin();
      return streamed(stream.end(told({ ...each, text: '', ending: 'refusal' })));
    });
    const details = { status: 'incomplete', incomplete_details: { reason: 'content_filter' } };
    expect(refused?.at(-1)).toMatchObject({ type: 'response.incomplete', sequence_number: 7, response: details });
    expect(uncalled).toMatchObject([
      { type: 'response.incomplete', sequence_number: 3, response: { ...details, output: [] } },
    ]);
  });

  it('ends with its error where it fails', () => {
    const stream = responseFormat(7).stream(opening);
    stream.begin();
    const error = { message: 'too long', type: 'api_error', code: 'timeout', param: null };
    expect(streamed(stream.failure(new RelayError('timeout', 'too long')))).toEqual([
      { type: 'error', sequence_number: 4, error },
    ]);
  });
});
