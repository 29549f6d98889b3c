import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Input, Output } from '../../../../../src/features/demo/program/protocol.js';

const program = path.join(__dirname, '../../../../../src/features/demo/program/main.js');
const started = new Set<ChildProcessWithoutNullStreams>();

afterEach(async () => {
  await Promise.all([...started].map(finished));
  started.clear();
});

async function finished(child: ChildProcessWithoutNullStreams): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

function start(...args: string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [program, ...args]);
  started.add(child);
  child.stdin.on('error', () => undefined);
  return child;
}

async function run(args: readonly string[], stdin: string): Promise<{ code: number | null; stdout: string }> {
  const child = start(...args);
  child.stdin.end(stdin);
  const [stdout, [code]] = await Promise.all([textOf(child.stdout), once(child, 'close')]);
  return { code, stdout };
}

function encode(inputs: readonly Input[]): string {
  return inputs.map((input) => `${JSON.stringify(input)}\n`).join('');
}

function decode(stdout: string): readonly Output[] {
  const lines = stdout.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Output);
}

async function tell(inputs: readonly Input[], ...args: string[]): Promise<readonly Output[]> {
  return decode((await run(args, encode(inputs))).stdout);
}

function deltas(outputs: readonly Output[]): readonly string[] {
  return outputs.flatMap((output) => (output.type === 'delta' ? [output.text] : []));
}

/** Returns the deltas of each answer. */
function answersIn(outputs: readonly Output[]): readonly (readonly string[])[] {
  const ends = outputs.flatMap(({ type }, at) => (type === 'end' ? [at] : []));
  return ends.map((end, turn) => deltas(outputs.slice((ends[turn - 1] ?? -1) + 1, end)));
}

const user = (text: string): Input => ({ type: 'user', text });
const replay = (role: 'user' | 'assistant', text: string): Input => ({ type: 'replay', role, text });

describe('The demo model as a program', () => {
  it('prints its version, and nothing without input', async () => {
    expect(await run(['--version'], '')).toEqual({ code: 0, stdout: 'prompt-relay-demo 1.0.0\n' });
    expect(await run([], '')).toEqual({ code: 0, stdout: '' });
  });

  it('lists its two models, with eliza as the default', async () => {
    const about = { name: expect.any(String), description: expect.stringContaining('demo') };
    const models = [
      { id: 'eliza', default: true, ...about },
      { id: 'echo', default: false, ...about },
    ];
    expect(await tell([{ type: 'models' }])).toEqual([{ type: 'models', models }]);
  });

  it('answers every turn with model_unknown for an unknown model', async () => {
    const outputs = await tell([user('hello'), user('hello?')], '--model', 'gpt-9');
    const failure = { type: 'error', reason: 'model_unknown', message: expect.stringContaining('eliza, echo') };
    expect(outputs).toEqual([failure, failure]);
  });

  it('reports an error for each line that breaks the protocol, and answers the next one', async () => {
    const broken = ['nonsense', '', 'null', '[]', '{"type":1}', '{"type":"user"}'];
    broken.push('{"type":"replay","role":"x","text":""}');
    const lines = broken.map((line) => `${line}\n${encode([user('ok')])}`);
    const outputs = decode((await run(['--model', 'echo'], lines.join(''))).stdout);
    expect(outputs.map(({ type }) => type)).toEqual(broken.flatMap(() => ['error', 'delta', 'end']));
    for (const output of outputs.filter(({ type }) => type === 'error'))
      expect(output).toMatchObject({ reason: 'other' });
  });

  it('answers a last line that lacks its newline', async () => {
    expect(decode((await run([], '{"type":"user","text":"hi"}')).stdout).at(-1)).toMatchObject({ type: 'end' });
  });

  it('answers turn after turn while its stdin is open', async () => {
    const child = start();
    child.stdout.setEncoding('utf8');
    for (const prompt of ['My name is Ada.', 'What is my name?']) {
      child.stdin.write(encode([user(prompt)]));
      let stdout = '';
      while (!stdout.includes('"end"')) stdout += (await once(child.stdout, 'data'))[0];
      expect(deltas(decode(stdout)).join('')).toContain('Ada');
    }
  });

  it('streams one word per delta', async () => {
    const words = deltas(await tell([user('hello')]));
    expect(words.length).toBeGreaterThan(5);
    for (const word of words) expect(word).toMatch(/^\S+\s?$/);
  });

  it('counts only the words of the turn', async () => {
    const outputs = await tell([replay('user', 'not counted'), user(' one  two\nthree ')], '--model', 'echo');
    expect(outputs.at(-1)).toEqual({ type: 'end', model: 'echo', usage: { input_tokens: 3, output_tokens: 3 } });
  });

  it('exits silently when the reader closes its output', async () => {
    const child = start('--model', 'echo');
    child.stdout.destroy();
    child.stdin.write(encode([user('a word '.repeat(100_000))]));
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('waits for a slow reader', async () => {
    const child = start('--model', 'echo');
    const text = 'a word '.repeat(500_000);
    child.stdin.end(encode([user(text)]));
    await sleep(300);
    expect(child.exitCode).toBeNull();
    expect(deltas(decode(await textOf(child.stdout))).join('')).toBe(text);
  });
});

describe('The model echo', () => {
  const texts: Record<string, string> = {
    'an empty text': '',
    'white space': ' \n\t \r\n ',
    'line separators': 'a\u2028b\u2029c\u0085d',
    'many languages': 'naïve 東京 👩‍👩‍👧 مرحبا',
    'half a surrogate pair': '\udc00 a \ud800',
    'a megabyte of words': 'some words\n'.repeat(100_000),
    'a megabyte of one word': 'x'.repeat(1_000_000),
    'a megabyte of emoji, at an odd place': `x${'🦄'.repeat(300_000)}`,
  };

  it('returns each text unchanged, in deltas of at most 16 KiB that split no surrogate pair', async () => {
    const answers = answersIn(await tell(Object.values(texts).map(user), '--model', 'echo'));
    for (const [index, [name, text]] of Object.entries(texts).entries()) {
      const pieces = answers[index] ?? [];
      expect([name, pieces.join('') === text]).toEqual([name, true]);
      expect(Math.max(0, ...pieces.map((piece) => Buffer.byteLength(piece)))).toBeLessThanOrEqual(16 * 1024);
      expect(pieces.slice(1).filter((piece) => /^[\udc00-\udfff]/.test(piece))).toEqual([]);
    }
  });
});

it('A conversation of eliza continues after a replay exactly as after the original turns', async () => {
  const prompts = 'My name is Ada.|My cat is Tom|I feel tired|well|so it goes|What is my cat?|hm'.split('|');
  const system: Input = { type: 'system', text: 'You are Bob.' };
  const heard = async (inputs: readonly Input[]) => answersIn(await tell(inputs)).map((pieces) => pieces.join(''));
  const live = await heard([system, ...prompts.map(user)]);
  for (let turns = 1; turns < prompts.length; turns++) {
    const past = prompts.slice(0, turns).flatMap((prompt, at) => {
      return [replay('user', prompt), replay('assistant', live[at] ?? '')];
    });
    expect(await heard([system, ...past, ...prompts.slice(turns).map(user)])).toEqual(live.slice(turns));
  }
});
