import { models, type Voice, voiceOf } from './models.js';
import { encode, type Input, linesOf, type Output, parse } from './protocol.js';
import { countWords, deltasOf } from './text.js';

/** Shorter answers leave in one write. */
const writeUnits = 64 * 1024;

function* answer(model: string, voice: Voice, prompt: string): Generator<Output> {
  const text = voice.answer(prompt);
  for (const delta of deltasOf(text)) yield { type: 'delta', text: delta };
  yield { type: 'end', model, usage: { input_tokens: countWords(prompt), output_tokens: countWords(text) } };
}

function unknownModel(): Output {
  const ids = models.map(({ id }) => id).join(', ');
  return { type: 'error', reason: 'model_unknown', message: `the demo has no such model; it has: ${ids}` };
}

function* respond(model: string, voice: Voice | null, input: Input | null): Generator<Output> {
  if (input === null) yield { type: 'error', reason: 'other', message: 'a line broke the protocol of the demo' };
  else if (input.type === 'models') yield { type: 'models', models };
  else if (input.type === 'system') voice?.instruct(input.text);
  else if (input.type === 'replay') voice?.recall(input.role, input.text);
  else if (voice === null) yield unknownModel();
  else yield* answer(model, voice, input.text);
}

function written(text: string): Promise<void> | undefined {
  if (process.stdout.write(text)) return undefined;
  return new Promise((resolve) => process.stdout.once('drain', resolve));
}

async function send(outputs: Iterable<Output>): Promise<void> {
  let lines = '';
  for (const output of outputs) {
    lines += encode(output);
    if (lines.length < writeUnits) continue;
    await written(lines);
    lines = '';
  }
  if (lines !== '') await written(lines);
}

async function converse(model: string): Promise<void> {
  const voice = voiceOf(model);
  const chunks: AsyncIterable<string> = process.stdin.setEncoding('utf8');
  for await (const line of linesOf(chunks)) await send(respond(model, voice, parse(line)));
}

function modelOf(args: readonly string[]): string {
  const at = args.indexOf('--model');
  return at < 0 ? 'eliza' : (args[at + 1] ?? '');
}

// Nobody reads any more: there is nothing left to do, and nobody to tell.
process.stdout.on('error', () => process.exit(0));

if (process.argv.includes('--version')) process.stdout.write('prompt-relay-demo 1.0.0\n');
else void converse(modelOf(process.argv.slice(2)));
