import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Conversationalist } from '../../src/primary/demo/conversationalist.js';
import type { Input, Output } from '../../src/primary/demo/protocol.js';

const program = path.join(__dirname, '../../src/primary/demo/main.js');
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

/** What it answers to the last of these. */
async function lastAnswer(...inputs: readonly Input[]): Promise<string> {
  const outputs = await tell(inputs);
  const before = outputs.slice(0, -1).findLastIndex(({ type }) => type === 'end');
  return deltas(outputs.slice(before + 1)).join('');
}

describe('the demo model as a program', () => {
  it('says its version, and nothing when it is told nothing', async () => {
    expect(await run(['--version'], '')).toEqual({ code: 0, stdout: 'prompt-relay-demo 1.0.0\n' });
    expect(await run([], '')).toEqual({ code: 0, stdout: '' });
  });

  it('lists its two models, eliza being the default', async () => {
    const [list] = await tell([{ type: 'models' }]);
    const models = list?.type === 'models' ? list.models : [];
    expect(models.map((model) => `${model.id} ${model.default}`)).toEqual(['eliza true', 'echo false']);
  });

  it('answers every turn with a model that it does not have by model_unknown', async () => {
    const outputs = await tell([user('hello'), user('hello?')], '--model', 'gpt-9');
    const failure = { type: 'error', reason: 'model_unknown', message: expect.stringContaining('eliza, echo') };
    expect(outputs).toEqual([failure, failure]);
  });

  it.each(['nonsense', '', 'null', '[]', '{"type":1}', '{"type":"user"}', '{"type":"replay","role":"x","text":""}'])(
    'complains about the line %j and answers the next one',
    async (line) => {
      const outputs = decode((await run(['--model', 'echo'], `${line}\n${encode([user('ok')])}`)).stdout);
      expect(outputs.map(({ type }) => type)).toEqual(['error', 'delta', 'end']);
      expect(outputs[0]).toMatchObject({ reason: 'other' });
    },
  );

  it('answers a last line that lacks its newline', async () => {
    expect(decode((await run([], '{"type":"user","text":"hi"}')).stdout).at(-1)).toMatchObject({ type: 'end' });
  });

  it('answers turn after turn while its stdin stays open', async () => {
    const child = start();
    child.stdout.setEncoding('utf8');
    for (const prompt of ['My name is Ada.', 'What is my name?']) {
      child.stdin.write(encode([user(prompt)]));
      let stdout = '';
      while (!stdout.includes('"end"')) stdout += (await once(child.stdout, 'data'))[0];
      expect(deltas(decode(stdout)).join('')).toContain('Ada');
    }
  });

  it('streams one word a delta', async () => {
    const words = deltas(await tell([user('hello')]));
    expect(words.length).toBeGreaterThan(5);
    for (const word of words) expect(word).toMatch(/^\S+\s?$/);
  });

  it('counts the words of the turn alone', async () => {
    const outputs = await tell([replay('user', 'not counted'), user(' one  two\nthree ')], '--model', 'echo');
    expect(outputs.at(-1)).toEqual({ type: 'end', model: 'echo', usage: { input_tokens: 3, output_tokens: 3 } });
  });

  it('ends quietly when nobody reads its answer any more', async () => {
    const child = start('--model', 'echo');
    child.stdout.destroy();
    child.stdin.write(encode([user('a word '.repeat(100_000))]));
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('waits for a reader that is slow', async () => {
    const child = start('--model', 'echo');
    const text = 'a word '.repeat(500_000);
    child.stdin.end(encode([user(text)]));
    await sleep(300);
    expect(child.exitCode).toBeNull();
    expect(deltas(decode(await textOf(child.stdout))).join('')).toBe(text);
  });
});

describe('the model echo', () => {
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
    'returns %s as it is, in deltas of at most 16 KiB that split no surrogate pair',
    async (name) => {
      const pieces = deltas(await tell([user(texts[name] ?? '')], '--model', 'echo'));
      expect(pieces.join('') === texts[name]).toBe(true);
      expect(Math.max(0, ...pieces.map((piece) => Buffer.byteLength(piece)))).toBeLessThanOrEqual(16 * 1024);
      expect(pieces.slice(1).filter((piece) => /^[\udc00-\udfff]/.test(piece))).toEqual([]);
    },
  );
});

describe('the model eliza', () => {
  it('says in its first answer, and in no later one, that it is a demo', async () => {
    expect(await lastAnswer(user('I like tea.'))).toMatch(/^I am Eliza, a demo: /);
    expect(await lastAnswer(user('Hello!'), user('I like tea.'))).not.toContain('demo');
    expect(await lastAnswer(replay('user', 'Hello!'), replay('assistant', 'Hi.'), user('Hm.'))).not.toContain('demo');
  });

  it.each(['Who are you?', 'what is your name', 'Are you a human?', 'are you ChatGPT?'])(
    'admits to be a demo when asked: %s',
    async (question) => expect(await lastAnswer(user('Hello!'), user(question))).toContain('I am Eliza, a demo'),
  );

  it('does not take every question about itself for one about what it is', async () => {
    expect(await lastAnswer(user('Hello!'), user('Are you hungry?'))).not.toContain('I am Eliza');
  });

  it('takes the name that the system text gives it, and still says that it is a demo', async () => {
    const system: Input = { type: 'system', text: 'You are a helpful assistant. Your name is Max.' };
    expect(await lastAnswer(system, user('Hello!'))).toMatch(/^I am Max, a demo: /);
  });

  it.each([
    ['My name is Ada.', 'What is my name?', 'Your name is Ada.'],
    ["Hello, I'm Ada Lovelace", 'who am I', 'Your name is Ada Lovelace.'],
    ['My favourite colour is green!', "What's my favorite color?", 'Your favorite color is green.'],
    ['my dog is called Rex and I live in Paris', "What is my dog's name? And where do I live?", 'Your dog is Rex.'],
    ['my dog is called Rex and I live in Paris', 'where do I live?', 'You told me that you live in Paris.'],
    ['Remember the number 42.', 'Which number did I ask you to remember?', 'You asked me to remember: the number 42.'],
    ['My code is $1 $& $$.', 'Do you know what my code is?', 'Your code is $1 $& $$.'],
    ['Once upon a time', 'What did I say?', 'You said: Once upon a time'],
  ])('was told "%s" and is asked "%s"', async (told, question, answer) => {
    expect(await lastAnswer(user(told), user(question))).toContain(answer);
  });

  it('does not make up what it was not told', async () => {
    expect(await lastAnswer(user('Hello!'), user('What is my name?'))).toBe('You have not told me your name yet.');
  });

  it.each([
    ['What is 12 * 7?', '12 * 7 = 84.'],
    ['2+2=', '2+2 = 4.'],
    ['how much is (1 plus 2.5) times -3', '(1 + 2.5) * -3 = -10.5.'],
    ["what's 0.1 + 0.2?", '0.1 + 0.2 = 0.3.'],
    ['What is 1/0?', '1/0 has no answer that I can give.'],
  ])('calculates: %s', async (question, answer) => {
    expect(await lastAnswer(user('Hello!'), user(question))).toBe(answer);
  });

  it('answers all that a prompt asks for', async () => {
    const answer = await lastAnswer(user('Hi'), user('My name is Ada. What is 2+2? Thank you!'));
    expect(answer).toBe('Nice to meet you, Ada. 2+2 = 4. You are welcome, Ada.');
  });

  it('goes on from a replay exactly as from the turns themselves', async () => {
    const prompts = 'My name is Ada.|My cat is Tom|I feel tired|well|so it goes|What did you say?|hm'.split('|');
    const live = new Conversationalist();
    const answers = prompts.map((prompt) => live.answer(prompt));
    for (let turns = 1; turns < prompts.length; turns++) {
      const replayed = new Conversationalist();
      for (const [at, prompt] of prompts.slice(0, turns).entries()) {
        replayed.recall('user', prompt);
        replayed.recall('assistant', answers[at] ?? '');
      }
      expect(replayed.answer(prompts[turns] ?? '')).toBe(answers[turns]);
    }
  });

  it('has something well-formed to say to any text', () => {
    const words = "my|name|is|I|am|what|1|+|(|?|. |\n|🦄|__proto__|$1|'|é| ".split('|');
    const eliza = new Conversationalist();
    for (let seed = 1; seed <= 3000; seed++) {
      const prompt = Array.from({ length: seed % 60 }, (_, at) => words[(seed * (at + 7) * (at + 3)) % words.length]);
      const answer = eliza.answer(prompt.join(seed % 2 === 0 ? ' ' : ''));
      expect(answer).not.toBe('');
      expect(Buffer.from(answer).toString()).toBe(answer);
    }
  });

  it.each([' ', '!', ',', 'my ', 'my is ', 'I am ', ' and', '1+', '(', 'what is ', '\n', '🦄', 'because '])(
    'is not held up by a megabyte of %j',
    (part) => {
      const from = performance.now();
      expect(new Conversationalist().answer(part.repeat(1_000_000 / part.length))).toContain('demo');
      expect(performance.now() - from).toBeLessThan(1000);
    },
  );
});
