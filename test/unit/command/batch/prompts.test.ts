import { isBad, type LineDefaults, promptsIn, RemainingPrompts } from '../../../../src/command/batch/prompts.js';
import { linesOf } from '../../../../src/shared/text/json-lines.js';
import { system, user } from '../../../support/doors/sdk-messages.js';

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function* bytesOf(lines: readonly (object | string)[]): AsyncGenerator<Uint8Array> {
  for (const line of lines) yield Buffer.from(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`);
}

function read(lines: readonly (object | string)[], defaults: LineDefaults = {}) {
  return collected(promptsIn(linesOf(bytesOf(lines)), defaults));
}

async function faultOf(line: object | string): Promise<string | undefined> {
  const [prompt] = await read([line]);
  return prompt !== undefined && isBad(prompt) ? prompt.fault : undefined;
}

const x = { prompt: 'x' };
const said = { messages: [user('x')] };

describe('The prompts in a file', () => {
  it('have the id of their line, or one made of its number and its text', async () => {
    const prompts = await read([{ id: 'a', ...x }, { id: 7, ...x }, '', x, x]);
    expect(prompts.map(({ id, line }) => [id, line])).toEqual([
      ['a', 1],
      [7, 2],
      [expect.stringMatching(/^4-[0-9a-f]{8}$/), 4],
      [expect.stringMatching(/^5-[0-9a-f]{8}$/), 5],
    ]);
    const [changed] = await read([{ prompt: 'y' }]);
    expect(changed?.id).not.toBe((await read([x]))[0]?.id);
  });

  it('use the options of the command line for missing fields', async () => {
    const [plain, own] = await read([{ prompt: 'x' }, { prompt: 'y', model: 'b' }], { model: 'a', system: 's' });
    expect(plain).toMatchObject({ path: '/ask', body: { prompt: 'x', model: 'a', system: 's' } });
    expect(own).toMatchObject({ body: { prompt: 'y', model: 'b', system: 's' } });
  });

  it('are sent to the OpenAI API if they are messages', async () => {
    const schema = { type: 'object' };
    const [prompt] = await read([{ ...said, system: 's', schema, effort: 'low' }]);
    expect(prompt).toMatchObject({
      path: '/v1/chat/completions',
      body: {
        model: 'default',
        messages: [system('s'), ...said.messages],
        response_format: { type: 'json_schema', json_schema: { schema } },
        reasoning_effort: 'low',
      },
    });
  });

  it('may have images, as files or inline', async () => {
    const image = { media_type: 'image/png', data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ' };
    const [files, inline] = await read([['a.png', 'b.png'], [image]].map((images) => ({ ...x, images })));
    expect(files).toMatchObject({ imageFiles: ['a.png', 'b.png'], body: { prompt: 'x' } });
    expect(inline).toMatchObject({ imageFiles: [], body: { images: [image] } });
  });

  it.each<[object | string, string]>([
    ['{', 'must be an object'],
    ['[1]', 'must be an object'],
    ['null', 'must be an object'],
    [{}, 'must have prompt or messages'],
    [{ prompt: 'x', messages: [] }, 'must have prompt or messages'],
    [{ prompt: ' ' }, 'prompt: must not be empty'],
    [{ prompt: 'x\0' }, 'prompt: must not contain NUL'],
    [{ prompt: 'x', promt: 1 }, 'has an unknown field: promt'],
    [{ prompt: 'x', stream: true }, 'has an unknown field: stream'],
    [{ prompt: 'x', images: 'a.png' }, 'images: must be a list'],
    [{ prompt: 'x', images: ['a.png', {}] }, 'images: must all be files, or none'],
    [{ prompt: 'x', images: [{ media_type: 'image/png', data: '!' }] }, 'images.0.data: must be base64'],
    [{ prompt: 'x', id: '' }, 'id: must be'],
    [{ prompt: 'x', id: null }, 'id: must be'],
    [{ prompt: 'x', id: 1.5 }, 'id: must be'],
    [{ messages: [] }, 'messages: must be a list'],
    [{ messages: ['x'] }, 'messages: must be a list'],
    [{ ...said, images: [] }, 'images: must be in the messages'],
    [{ ...said, tools: [] }, 'has an unknown field: tools'],
  ])('are invalid if no service can answer them: %j', async (line, fault) => {
    expect(await faultOf(line)).toContain(fault);
  });

  it('must have distinct ids', async () => {
    const [first, second] = await read(Array.from([1, '1'], (id) => ({ id, ...x })));
    expect(first).toMatchObject({ id: 1, body: { prompt: 'x' } });
    expect(second).toMatchObject({ fault: 'id: an earlier line has the same id', id: expect.stringMatching(/^2-/) });
  });

  it('are skipped and counted if they have an answer', async () => {
    const prompts = promptsIn(linesOf(bytesOf([1, 2].map((id) => ({ id, ...x })))), {});
    const left = new RemainingPrompts(prompts, { size: 7, has: (id) => id === 1 });
    expect(left.skipped).toBe(7);
    expect((await collected(left.prompts())).map(({ id }) => id)).toEqual([2]);
    expect(left.skipped).toBe(1);
  });
});
