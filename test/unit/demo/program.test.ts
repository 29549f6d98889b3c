import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Input, Output } from '../../../src/demo/protocol.js';

const program = path.join(__dirname, '../../../src/demo/main.js');
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

  it.each(['nonsense', '', 'null', '[]', '{"type":1}', '{"type":"user"}', '{"type":"replay","role":"x","text":""}'])(
    'reports an error for the line %j and answers the next one',
    async (line) => {
      const outputs = decode((await run(['--model', 'echo'], `${line}\n${encode([user('ok')])}`)).stdout);
      expect(outputs.map(({ type }) => type)).toEqual(['error', 'delta', 'end']);
      expect(outputs[0]).toMatchObject({ reason: 'other' });
    },
  );

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

  it.each(Object.keys(texts))(
    'returns %s unchanged, in deltas of at most 16 KiB that split no surrogate pair',
    async (name) => {
      const pieces = deltas(await tell([user(texts[name] ?? '')], '--model', 'echo'));
      expect(pieces.join('') === texts[name]).toBe(true);
      expect(Math.max(0, ...pieces.map((piece) => Buffer.byteLength(piece)))).toBeLessThanOrEqual(16 * 1024);
      expect(pieces.slice(1).filter((piece) => /^[\udc00-\udfff]/.test(piece))).toEqual([]);
    },
  );
});

/** Returns the answers to these prompts, one after the other. */
async function answers(prompts: readonly string[], before: readonly Input[] = []): Promise<readonly string[]> {
  const outputs = await tell([...before, ...prompts.map(user)]);
  const ends = outputs.flatMap(({ type }, at) => (type === 'end' ? [at] : []));
  expect(ends).toHaveLength(prompts.length);
  return ends.map((end, turn) => deltas(outputs.slice((ends[turn - 1] ?? -1) + 1, end)).join(''));
}

async function lastAnswer(...prompts: readonly string[]): Promise<string | undefined> {
  return (await answers(prompts)).at(-1);
}

describe('The model eliza', () => {
  const introduction = 'I am Eliza, a demo: a small program with a few fixed rules, not a language model. ';

  it('introduces itself as a demo in its first answer only', async () => {
    const [first, second] = await answers(['I like tea.', 'I like tea.']);
    expect([first, second]).toEqual([`${introduction}Why do you like tea?`, 'Why do you like tea?']);
  });

  it.each(['Who are you?', 'what is your name', 'Are you a human?', 'are you ChatGPT?'])(
    'introduces itself again when asked: %s',
    async (question) => expect(await lastAnswer('Hello!', question)).toContain(introduction),
  );

  it('does not treat every question about itself as one about what it is', async () => {
    expect(await lastAnswer('Hello!', 'Are you hungry?')).not.toContain('I am Eliza');
  });

  it.each([
    ['You are a helpful assistant. Your name is Max.', /^I am Max, a demo: /],
    ['You are Bob.', /^I am Bob, a demo: /],
    ['You are a helpful assistant.', /^I am Eliza, a demo: /],
  ])('uses the name from the system text, and still introduces itself as a demo: %s', async (text, expected) => {
    expect((await answers(['Hello!'], [{ type: 'system', text }]))[0]).toMatch(expected);
  });

  it.each([
    ['Hello, my name is Ada', 'Hello. Nice to meet you, Ada.'],
    ['Hello, I am Ada', 'Hello. Nice to meet you, Ada.'],
    ['hello', 'Hello. What is your name?'],
    ['My dog is called Rex and I feel tired.', 'I will remember that your dog is Rex. Why do you feel tired?'],
    ['I am sad because you are mean to me', 'What makes you think that I am mean to you?'],
    ['I think my dog knows me', 'Are you sure that your dog knows you?'],
  ])('answers "%s" as the documentation and the rules define', async (prompt, reply) => {
    expect(await lastAnswer(prompt)).toBe(introduction + reply);
  });

  it.each([
    ['My name is Ada.', 'What is my name?', 'Your name is Ada.'],
    ["Hello, I'm Ada Lovelace", 'who am I', 'Your name is Ada Lovelace.'],
    ['My favourite colour is green!', "What's my favorite color?", 'Your favorite color is green.'],
    ['my dog is called Rex and I live in Paris', "What is my dog's name?", 'Your dog is Rex.'],
    ['My lucky number is 7', 'Tell me my lucky number', 'Your lucky number is 7.'],
    ['Remember the number 42.', 'Which number did I ask you to remember?', 'You asked me to remember: the number 42.'],
    ['Please remember that I owe you 5', 'What did I ask you to remember?', 'You asked me to remember: you owe me 5.'],
    ['Remember the number 42.', 'What was the number?', 'You asked me to remember: the number 42.'],
    ['Remember that my name is Ada.', 'Do you remember my name?', 'Your name is Ada.'],
    ['My code is $1 $& $$.', 'Do you know what my code is?', 'Your code is $1 $& $$.'],
    ['My __proto__ is odd.', 'What is my __proto__?', 'Your __proto__ is odd.'],
  ])('remembers "%s" when asked "%s"', async (told, question, answer) => {
    expect(await lastAnswer(told, 'Well.', question)).toBe(answer);
  });

  it('believes the latest statement', async () => {
    expect(await lastAnswer('My name is Ada.', 'My name is Grace.', 'What is my name?')).toBe('Your name is Grace.');
  });

  it('does not invent facts', async () => {
    const questions = ['What is my name?', 'What is my constructor?', 'Do you remember anything?'];
    expect((await answers(['Hello!', ...questions])).slice(1)).toEqual([
      'You have not told me your name yet.',
      'You have not told me your constructor yet.',
      'You asked me to remember: nothing yet.',
    ]);
  });

  it('continues after a replay exactly as after the original turns', async () => {
    const prompts = 'My name is Ada.|My cat is Tom|I feel tired|well|so it goes|What is my cat?|hm'.split('|');
    const system: Input = { type: 'system', text: 'You are Bob.' };
    const live = await answers(prompts, [system]);
    for (let turns = 1; turns < prompts.length; turns++) {
      const past = prompts.slice(0, turns).flatMap((prompt, at) => {
        return [replay('user', prompt), replay('assistant', live[at] ?? '')];
      });
      expect(await answers(prompts.slice(turns), [system, ...past])).toEqual(live.slice(turns));
    }
  });

  it('has a well-formed answer to any text', async () => {
    const words = "my|name|is|I|am|what|1|+|(|?|. |\n|🦄|__proto__|$1|'|é| |\0|\u001b|remember".split('|');
    const prompts = Array.from({ length: 3000 }, (_, seed) => {
      const prompt = Array.from({ length: seed % 60 }, (_, at) => words[(seed * (at + 7) * (at + 3)) % words.length]);
      return prompt.join(seed % 2 === 0 ? ' ' : '');
    });
    const said = await answers(prompts);
    expect(said.filter((answer) => answer === '' || Buffer.from(answer).toString() !== answer)).toEqual([]);
  });

  it.each([
    ' ',
    '!',
    '.',
    ',',
    'my ',
    'my is ',
    'I am ',
    ' and',
    'remember ',
    'Hi ',
    'A',
    'what is ',
    '\n',
    '🦄',
    'you are ',
  ])('handles a megabyte of %j quickly', async (part) => {
    const text = part.repeat(1_000_000 / part.length);
    const from = performance.now();
    const [first] = await answers([text], [{ type: 'system', text }]);
    expect(performance.now() - from).toBeLessThan(3000); // including its start
    expect(first).toContain('a demo');
  });
});
