import { ollamaChatRequest, parseOllamaChat } from '../../../../src/features/ollama/chat-request.js';
import { ollamaGenerateRequest, parseOllamaGenerate } from '../../../../src/features/ollama/generate-request.js';
import { callIdAt } from '../../../../src/shared/text/chain.js';
import { assistant, png, pngAt, user } from '../../../support/doors/sdk-messages.js';

const hi = user('Hi');
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { type: 'function', function: { name: 'weather', parameters } };
const called = (name: string, id?: string) => ({ ...(id && { id }), function: { name, arguments: { city: name } } });

function chat(body: object) {
  const parsed = parseOllamaChat(ollamaChatRequest.parse({ model: 'eliza', messages: [hi], ...body }));
  if (parsed === null) throw new Error('The request asks for nothing');
  return parsed;
}

describe('A request to the Ollama API asks for', () => {
  it.each<[unknown, object]>([
    [undefined, { thinking: undefined, effort: undefined }],
    [null, { thinking: undefined, effort: undefined }],
    [false, { thinking: undefined, effort: undefined }],
    [true, { thinking: 'summarized', effort: undefined }],
    ['low', { thinking: 'summarized', effort: 'low' }],
    ['xhigh', { thinking: 'summarized', effort: 'xhigh' }],
    ['max', { thinking: 'summarized', effort: 'max' }],
  ])('thoughts with think: %j', (think, wanted) => {
    const { thinking, effort } = chat({ think }).job;
    expect({ thinking, effort }).toEqual(wanted);
    const generated = parseOllamaGenerate(ollamaGenerateRequest.parse({ model: 'eliza', prompt: 'Hi', think }));
    expect(generated?.job.thinking).toEqual(thinking);
  });

  it.each(['hard', 'constructor'])('no thoughts with the invalid level %j', (think) => {
    expect(() => chat({ think })).toThrow('think: must be true, false, low, medium, high, xhigh or max');
  });

  it.each([
    [{}, 'progress'],
    [{ think: '' }, undefined],
    [{ think: false }, undefined],
    [{ think: true }, 'summarized'],
  ])('words about progress beside tools, unless it says something about thoughts: %j', (more, thinking) => {
    expect(chat({ tools: [weather], ...more }).job.thinking).toBe(thinking);
  });

  it('a stream, unless it disables streaming', () => {
    const streams = [undefined, null, true, false].map((stream) => chat({ stream }).job.stream);
    expect(streams).toEqual([true, true, true, false]);
  });

  it('an unlimited answer, if the number of tokens is below 1', () => {
    const most = [128, 0, -1, -2].map((num_predict) => chat({ options: { num_predict } }).job.sampling?.maxTokens);
    expect(most).toEqual([128, undefined, undefined, undefined]);
  });

  it('nothing, without a message or a prompt', () => {
    expect(parseOllamaChat(ollamaChatRequest.parse({ model: 'eliza', messages: [] }))).toBeNull();
    expect(parseOllamaGenerate(ollamaGenerateRequest.parse({ model: 'eliza', prompt: '' }))).toBeNull();
    expect(parseOllamaGenerate(ollamaGenerateRequest.parse({ model: 'eliza', images: [png] }))).not.toBeNull();
  });

  it('answers to images whose type is detected from their bytes', () => {
    const { job, imageField } = chat({ messages: [hi, assistant('a'), { ...hi, images: [png] }] });
    expect(job.images).toEqual(pngAt(0));
    expect(imageField).toBe('messages.2.images.0');
    const wrong = [{ ...hi, images: ['bm8gaW1hZ2U='] }];
    expect(() => chat({ messages: wrong })).toThrow('messages.0.images.0: must be a png, jpeg, gif or webp image');
  });
});

describe('Tool results in the Ollama API', () => {
  const calls = [called('weather', 'x'), called('time', 'y')];
  const calling = assistant('', { tool_calls: calls });
  const tool = (content: string, marks: object = {}) => ({ role: 'tool', content, ...marks });
  const [first, second] = [callIdAt(0), callIdAt(1)];

  function resultsOf(...results: object[]) {
    const { job } = chat({ tools: [weather], messages: [hi, calling, ...results] });
    return job.results?.map(({ id, text }) => [id, text]);
  }

  it.each([
    ['the call that they name', [{ tool_call_id: 'y' }, { tool_call_id: 'x' }], [second, first]],
    ['the first call of their function', [{ tool_name: 'time' }, { name: 'weather' }], [second, first]],
    ['the first call', [{}, {}], [first, second]],
    [
      'the first open call, if they name none of the calls',
      [{ tool_name: 'news' }, { tool_name: 'time' }],
      [first, second],
    ],
  ])('belong to %s', (_what, marks, ids) => {
    const sent = marks.map((mark, index) => tool(`said ${index}`, mark));
    expect(resultsOf(...sent)).toEqual(ids.map((id, index) => [id, `said ${index}`]));
  });

  it('belong to calls that other results have left open, in any order', () => {
    const made = ['a', 'b', 'a', 'c', 'b'].map((name, index) => called(name, `id${index}`));
    const messages = [hi, assistant('', { tool_calls: made })];
    const marks = [
      { tool_name: 'b' },
      { tool_call_id: 'id0' },
      { tool_name: 'a' },
      { tool_name: 'b' },
      { tool_name: 'b' },
    ];
    const { job } = chat({ tools: [weather], messages: [...messages, ...marks.map((mark) => tool('x', mark))] });
    const [calls] = job.history?.slice(-1) ?? [];
    const names = new Map(calls?.calls?.map(({ id, name }) => [id, name]));
    expect(job.results?.map(({ id }) => names.get(id))).toEqual(['b', 'a', 'a', 'b', 'c']);
  });

  it('are text if there are more of them than calls, as are calls without a result', () => {
    const three = ['a', 'b', 'c'].map((content) => tool(content, { tool_name: 'time' }));
    const { job } = chat({ tools: [weather], messages: [hi, calling, ...three] });
    expect([job.results?.map(({ text }) => text), job.text]).toEqual([['a', 'b'], 'Result of time:\n\nc']);
    const one = chat({ tools: [weather], messages: [hi, calling, tool('x', { tool_name: 'time' })] }).job;
    const [, said] = one.history ?? [];
    expect(said?.calls).toEqual([{ id: first, name: 'time', input: '{"city":"time"}' }]);
    expect([said?.text, one.results?.map(({ id }) => id)]).toEqual(['{"city":"weather"}', [first]]);
  });

  it('belong to the calls of all preceding answers', () => {
    const [call, ...others] = calls;
    const answers = [assistant('', { tool_calls: [call] }), assistant('', { tool_calls: others })];
    const { job } = chat({ tools: [weather], messages: [hi, ...answers, tool('x'), tool('y')] });
    expect(job.results?.map(({ id }) => id)).toEqual([first, second]);
  });

  it('are text in the history if no tools are offered', () => {
    const { job } = chat({ messages: [hi, calling, tool('sunny', { tool_name: 'weather' })] });
    expect(job.results).toBeUndefined();
    expect(job.text).toContain('sunny');
  });
});
