import { completionRequest, parseCompletion } from '../../../../src/features/openai/completions.js';
import { check } from '../../../../src/worker/http/body.js';
import { always, answerEvents, begun, sdkDoor } from '../../../support/doors/sdk-door.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const read = (body: object) => parseCompletion(check(body, completionRequest));

function chunksOf(text: string): readonly Readonly<Record<string, unknown>>[] {
  return text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
}

describe('A completion', () => {
  it.each(['Hi', ['Hi']])('asks the model with its prompt: %j', (prompt) => {
    const { job, ignored } = read({ prompt, max_tokens: 9, temperature: 0.5, stop: 'x', frequency_penalty: 1 });
    const sampling = { maxTokens: 9, temperature: 0.5 };
    expect(job).toMatchObject({ text: 'Hi', history: [], sampling, stop: ['x'], model: undefined });
    expect(ignored).toEqual(['frequency_penalty']);
  });

  it('has no thoughts, but an effort', () => {
    const { thinking, effort } = read({ prompt: 'Hi', reasoning_effort: 'max' }).job;
    expect([thinking, effort]).toEqual([undefined, 'max']);
  });

  it('may have fields that change nothing', () => {
    const { ignored } = read({ prompt: 'Hi', suffix: '', echo: false, best_of: 1, n: 1, logprobs: null, user: 'a' });
    expect(ignored).toEqual(['user']);
  });

  it('may have zeros for what its client does not set, and lists that it has no probabilities', () => {
    const zeros = { n: 0, best_of: 0, logprobs: 0, max_tokens: 0, stop: '' };
    expect(read({ prompt: 'Hi', ...zeros })).toEqual({ ...read({ prompt: 'Hi' }), ignored: ['logprobs'] });
  });

  it.each<[string, object]>([
    ['prompt', { prompt: undefined }],
    ['prompt', { prompt: ' ' }],
    ['prompt', { prompt: ['a', 'b'] }],
    ['prompt', { prompt: [1, 2] }],
    ['suffix', { suffix: 'end' }],
    ['echo', { echo: true }],
    ['best_of', { best_of: 2 }],
    ['n', { n: 2 }],
    ['logprobs', { logprobs: 1 }],
    ['logprobs', { logprobs: true }],
    ['tools', { tools: [{ type: 'function' }] }],
    ['max_tokens', { max_tokens: 'many' }],
  ])('is refused for its %s: %j', (field, fields) => {
    expect(() => read({ prompt: 'Hi', ...fields })).toThrow(new RegExp(`^${field}: `));
  });

  it('is answered in the form of its API', async () => {
    await using door = await sdkDoor(always(...begun, ...answerEvents('So.'), jobDone()));
    const { status, body } = await door.post('/v1/completions', { prompt: 'Hi' });
    const choice = { text: 'So.', index: 0, logprobs: null, finish_reason: 'stop' };
    expect(status).toBe(200);
    expect(body).toMatchObject({ object: 'text_completion', choices: [choice], usage: { total_tokens: 0 } });
    expect(body.id).toMatch(/^cmpl-/);
  });

  it.each([true, false])('is streamed in pieces, with the usage if the client wants it: %j', async (wantsUsage) => {
    await using door = await sdkDoor(always(...begun, ...answerEvents('So.'), jobDone()));
    const body = { prompt: 'Hi', stream: true, ...(wantsUsage && { stream_options: { include_usage: true } }) };
    const { text } = await door.post('/v1/completions', body);
    const chunks = chunksOf(text) as { object: string; choices: { text: string; finish_reason: string }[] }[];
    expect(chunks.flatMap(({ choices }) => choices.map((choice) => choice.text)).join('')).toBe('So.');
    expect(chunks.findLast(({ choices }) => choices.length > 0)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.every(({ object }) => object === 'text_completion')).toBe(true);
    expect(chunks.filter((chunk) => 'usage' in chunk && chunk.usage !== null)).toHaveLength(wantsUsage ? 1 : 0);
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });
});
