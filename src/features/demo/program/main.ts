import { once } from 'node:events';
import { callsIn, saidOf, thoughtsIn } from './calls.js';
import { Eliza } from './eliza.js';
import {
  countWords,
  type DemoImage,
  deltasOf,
  type Input,
  linesOf,
  type Output,
  parse,
  type UserLine,
} from './protocol.js';
import { sampleOf } from './sample.js';

/** Model, which has an answer to any text. */
type Voice = Pick<Eliza, 'instruct' | 'answer'>;

const models = [
  { id: 'eliza', name: 'Eliza', description: 'A demo: a few rules that remember what you say.', default: true },
  { id: 'echo', name: 'Echo', description: 'A demo: answers with the prompt, byte for byte.', default: false },
];

/** Creates the model; null if it does not exist. */
function voiceOf(model: string): Voice | null {
  if (model === 'eliza') return new Eliza();
  return model === 'echo' ? { instruct: () => undefined, answer: (prompt) => prompt } : null;
}

/** Names of called tools by the IDs of the calls. */
type KnownCalls = Map<string, string>;

function respond(model: string, voice: Voice | null, names: KnownCalls, input: Input | null): readonly Output[] {
  if (input === null) return [{ type: 'error', reason: 'other', message: 'a line broke the protocol of the demo' }];
  if (input.type === 'models') return [{ type: 'models', models }];
  if (input.type === 'user') return voice === null ? [unknownModel()] : answer(model, voice, names, input);
  if (input.type === 'system') voice?.instruct(input.text);
  else if (input.role === 'user')
    voice?.answer(input.text); // repeats the turn, which rebuilds the model's memory
  else for (const { id, name } of input.calls ?? []) names.set(id, name);
  return [];
}

function unknownModel(): Output {
  const ids = models.map(({ id }) => id).join(', ');
  return { type: 'error', reason: 'model_unknown', message: `the demo has no such model; it has: ${ids}` };
}

function answer(model: string, voice: Voice, names: KnownCalls, line: UserLine): readonly Output[] {
  const { text: prompt, turn, images = [], schema, results = [] } = line;
  const turnField = turn === undefined ? {} : { turn };
  const calls = callsIn(line);
  for (const { id, name } of calls) names.set(id, name);
  const resultText = saidOf(results, names);
  const spoken = prompt === '' && results.length > 0 ? '' : voice.answer(prompt);
  const replyText = [resultText, images.map(seen).join('') + spoken].filter((part) => part !== '').join(' ');
  const text = schema == null ? replyText : JSON.stringify(sampleOf(schema, replyText));
  const outputTokens = countWords(calls.length > 0 ? JSON.stringify(calls) : text);
  const usage = { input_tokens: countWords(prompt), output_tokens: outputTokens };
  const deltas = deltasOf(text).map((text) => ({ type: 'delta' as const, text, ...turnField }));
  const called = calls.map((call) => ({ type: 'call' as const, ...call, ...turnField }));
  const thought = thoughtsIn(line).map((text) => ({ type: 'thought' as const, text, ...turnField }));
  return [...thought, ...(calls.length > 0 ? called : deltas), { type: 'end', model, usage, ...turnField }];
}

function seen({ media_type, data }: DemoImage): string {
  return `I was given an image (${media_type}, ${Buffer.byteLength(data, 'base64')} bytes), which I cannot see. `;
}

/** Writes the lines of a turn at once: a write for each word would cost more than the answer. */
async function send(outputs: readonly Output[]): Promise<void> {
  const lines = outputs.map((output) => `${JSON.stringify(output)}\n`).join('');
  if (!process.stdout.write(lines)) await once(process.stdout, 'drain');
}

async function converse(model: string): Promise<void> {
  const voice = voiceOf(model);
  const names: KnownCalls = new Map();
  const chunks: AsyncIterable<string> = process.stdin.setEncoding('utf8');
  for await (const line of linesOf(chunks)) await send(respond(model, voice, names, parse(line)));
}

function modelOf(args: readonly string[]): string {
  const at = args.indexOf('--model');
  return at < 0 ? 'eliza' : (args[at + 1] ?? '');
}

process.on('SIGUSR1', () => {}); // otherwise Node would open its debugger to every program of this machine
// No process reads the answers any more.
process.stdout.on('error', () => process.exit(0));

if (process.argv.includes('--version')) process.stdout.write('prompt-relay-demo 1.0.0\n');
else void converse(modelOf(process.argv.slice(2)));
