import { CommandError } from '../../../../src/command/base/errors.js';
import { linesOf } from '../../../../src/command/batch/json-lines.js';
import {
  isBad,
  type LineDefaults,
  type Prompt,
  promptsIn,
  remainingPrompts,
  wholeBody,
} from '../../../../src/command/batch/prompts.js';
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
    expect(plain).toMatchObject({ body: { model: 'a', messages: [system('s'), user('x')] } });
    expect(own).toMatchObject({ body: { model: 'b', messages: [system('s'), user('y')] } });
  });

  it.each([x, said])('are bodies of the OpenAI API: %j', async (sent) => {
    const schema = { type: 'object' };
    const [prompt] = await read([{ ...sent, system: 's', schema, effort: 'low' }]);
    expect(prompt).toMatchObject({
      body: {
        model: 'default',
        messages: [system('s'), ...said.messages],
        response_format: { type: 'json_schema', json_schema: { schema } },
        reasoning_effort: 'low',
      },
    });
  });

  it('may have images, as files or inline', async () => {
    const image = { media_type: 'image/png' as const, data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ' };
    const [prompt] = await read([{ ...x, system: 's', images: ['a.png', image] }]);
    const part = { type: 'image_url', image_url: { url: `data:image/png;base64,${image.data}` } };
    expect(await wholeBody(prompt as Prompt, async () => [image])).toMatchObject({
      messages: [system('s'), { role: 'user', content: [part, part, { type: 'text', text: 'x' }] }],
    });
    const missing = new CommandError(64, '--image: gone');
    expect(await wholeBody(prompt as Prompt, () => Promise.reject(missing))).toEqual({
      error: { code: 'validation_error', message: 'images: gone' },
    });
  });

  it('may have documents', async () => {
    const sent = [{ name: 'a.txt', text: 'ü' }, { data: 'JVBERi0=' }, { name: 'b.pdf', file_id: 'file-b' }];
    const [prompt] = await read([{ ...x, files: sent }]);
    const files = [
      { filename: 'a.txt', file_data: 'data:text/plain;base64,w7w=' },
      { file_data: 'data:application/pdf;base64,JVBERi0=' },
      { filename: 'b.pdf', file_id: 'file-b' },
    ].map((file) => ({ type: 'file', file }));
    const message = { role: 'user', content: [...files, { type: 'text', text: 'x' }] };
    expect(prompt).toMatchObject({ body: { messages: [message] } });
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
    [{ prompt: 'x', images: ['a.png', {}] }, 'images.0.media_type: must be'],
    [{ prompt: 'x', images: [{ media_type: 'image/png', data: '!' }] }, 'images.0.data: must be base64'],
    [{ prompt: 'x', images: [{ file_id: 'file-a' }] }, 'images: must be paths or have data'],
    [{ prompt: 'x', files: [{ file_id: 'file-a', text: 'x' }] }, 'files.0: must have one of data, text and file_id'],
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
    expect(first).toMatchObject({ id: 1, body: { messages: [user('x')] } });
    expect(second).toMatchObject({ fault: 'id: an earlier line has the same id', id: expect.stringMatching(/^2-/) });
  });

  it('are skipped and counted if they have an answer', async () => {
    const prompts = promptsIn(linesOf(bytesOf([1, 2].map((id) => ({ id, ...x })))), {});
    const counts: number[] = [];
    const isFirst = (id: string | number) => id === 1;
    const left = remainingPrompts(prompts, isFirst, (count) => counts.push(count));
    expect((await collected(left)).map(({ id }) => id)).toEqual([2]);
    expect(counts).toEqual([1]);
  });
});
