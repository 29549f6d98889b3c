import { isUtf8 } from 'node:buffer';
import { basename } from 'node:path';
import { askResult, imageFault } from '../../shared/api/ask.js';
import { acceptedBody } from '../../shared/api/jobs.js';
import { allEfforts, type Effort, type Image, imageTypes } from '../../shared/job.js';
import { binaryTypeOf, binaryTypes, documentTable } from '../../shared/tables/document-types.js';
import { fileFault } from '../../shared/text/system-error.js';
import type { Client } from '../base/client.js';
import {
  addressFlags,
  type Command,
  type CommandArguments,
  clientFor,
  jsonFlag,
  modelFlag,
  type NamedFiles,
} from '../base/command.js';
import { CommandError, exitCodes, InterruptedError } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';
import type { ImageReader } from '../batch/prompts.js';
import { printJob, runJob } from './answer.js';

/** Flag of the commands that send documents. */
export const fileFlag = {
  file: {
    type: 'string',
    short: 'f',
    multiple: true,
    placeholder: '<file>',
    values: 'file',
    description: 'PDF or text file for the model; may be repeated',
  },
} as const;

export const ask: Command = {
  name: 'ask',
  synopsis: '[prompt | -] …',
  summary: 'ask one question and print the answer',
  flags: {
    ...modelFlag,
    system: { type: 'string', short: 's', placeholder: '<text>', description: 'instructions for the model' },
    effort: {
      type: 'string',
      placeholder: '<level>',
      values: allEfforts,
      description: `reasoning effort of the model: ${allEfforts.join(', ')}`,
    },
    schema: {
      type: 'string',
      placeholder: '<file|json>',
      values: 'file',
      description: 'JSON Schema for the answer, which is then printed as JSON',
    },
    image: {
      type: 'string',
      short: 'i',
      multiple: true,
      placeholder: '<file>',
      values: 'file',
      description: 'PNG, JPEG, GIF or WebP file for the model; may be repeated',
    },
    ...fileFlag,
    background: {
      type: 'boolean',
      short: 'b',
      description: 'run the prompt in the background: print the id of the job for "prompt-relay jobs"',
    },
    ...jsonFlag,
    ...addressFlags,
  },
  maxPositionals: Number.POSITIVE_INFINITY,
  notes: [
    'The argument "-" stands for stdin. Without a prompt, the whole prompt is read from stdin. Other users can see arguments with ps: private prompts belong on stdin.',
  ],
  examples: [
    "prompt-relay ask 'What is a relay?'",
    "prompt-relay ask -m opus --effort high 'Prove it:' - < claim.txt",
    "prompt-relay ask --image chart.png 'What does it show?'",
    "prompt-relay ask --file report.pdf 'What does it say about 2026?'",
    "prompt-relay ask --schema answer.schema.json 'Name three birds' | jq .",
    "prompt-relay jobs follow $(prompt-relay ask --background 'Take your time')",
  ],
  run: async (args, context) => {
    const { terminal } = context;
    const body = await bodyFrom(args, context);
    const client = await clientFor(args, context);
    const call = { path: '/ask', body, schema: askResult } as const;
    const ending = new AbortController();
    using _ = terminal.onInterrupt(() => ending.abort(new InterruptedError()));
    if (args.has('background')) await startInBackground(client, body, ending.signal, args, terminal);
    else if (args.has('json')) await terminal.writeJson(await runJob(client, call, ending.signal));
    else await printJob(client, call, ending.signal, context);
    return exitCodes.ok;
  },
};

async function startInBackground(
  client: Client,
  body: object,
  signal: AbortSignal,
  args: CommandArguments,
  terminal: Terminal,
): Promise<void> {
  const accepted = await client.startInBackground('/ask', body, acceptedBody, signal);
  if (args.has('json')) return terminal.writeJson(accepted);
  await terminal.writeUntrusted(`${accepted.job_id}\n`);
}

/** Builds the request body. Checks the flags before it reads stdin. */
async function bodyFrom(args: CommandArguments, { files, terminal }: Parameters<Command['run']>[1]): Promise<object> {
  const extras = {
    effort: readEffort(args.value('effort')),
    schema: await readSchema(args.value('schema'), files),
    images: await readImages(args.values('image'), files),
    files: await readDocuments(args.values('file'), files),
  };
  return {
    prompt: await readPrompt(args, terminal),
    model: args.value('model'),
    system: args.value('system'),
    ...extras,
  };
}

async function readPrompt({ positionals }: CommandArguments, terminal: Terminal): Promise<string> {
  const usesStdin = positionals.length === 0 || positionals.includes('-');
  if (usesStdin && terminal.isStdinTty)
    terminal.message(terminal.messagePaint.dim('Type the prompt, then press Ctrl-D.'));
  const prompt = usesStdin ? await insertStdin(positionals, terminal) : positionals.join(' ');
  if (prompt.trim() !== '') return prompt;
  throw new CommandError(exitCodes.usage, 'the prompt is empty: pass it as an argument or on stdin');
}

/** Replaces `-` by the text of stdin, with a blank line before and after it. */
async function insertStdin(positionals: readonly string[], terminal: Terminal): Promise<string> {
  const input = await terminal.readStdin();
  const at = positionals.indexOf('-');
  const parts = [positionals.slice(0, Math.max(0, at)).join(' '), input, positionals.slice(at + 1).join(' ')];
  return parts.filter((part) => part !== '').join('\n\n');
}

export function readEffort(value: string | undefined): Effort | undefined {
  if (value === undefined) return undefined;
  const known = allEfforts.find((effort) => effort === value);
  if (known !== undefined) return known;
  throw usageError(`--effort: must be ${allEfforts.slice(0, -1).join(', ')} or ${allEfforts.at(-1)}`);
}

/** Parses a schema. Text that begins with a brace is JSON, any other text is the path of a file. */
export async function readSchema(value: string | undefined, files: NamedFiles): Promise<unknown> {
  if (value === undefined) return undefined;
  const text = value.trimStart().startsWith('{') ? value : String(await readNamed('--schema', value, files.read));
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`--schema: is not valid JSON: ${(error as Error).message}`);
  }
}

/** Reads images. Determines the media type from the content of a file, not from its name. */
export async function readImages(paths: readonly string[], files: NamedFiles): ReturnType<ImageReader> {
  if (paths.length === 0) return undefined;
  return Promise.all(
    paths.map(async (path) => {
      const data = (await readNamed('--image', path, files.readRegular)).toString('base64');
      const type = imageTypes.find((candidate: Image['mediaType']) => imageFault(candidate, data) === null);
      if (type === undefined) throw usageError(`--image: ${path} is not a PNG, JPEG, GIF or WebP file`);
      return { media_type: type, data };
    }),
  );
}

const binaryNames = binaryTypes.map((type) => documentTable[type].name).join(' nor a ');

/** Reads documents. The first bytes of a file show its type; any other file is a text. */
export async function readDocuments(paths: readonly string[], files: NamedFiles): Promise<object[] | undefined> {
  if (paths.length === 0) return undefined;
  return Promise.all(
    paths.map(async (path) => {
      const content = await readNamed('--file', path, files.readRegular);
      const name = basename(path);
      const type = binaryTypeOf(content);
      if (type !== null) return { name, media_type: type, data: content.toString('base64') };
      if (content.includes(0) || !isUtf8(content))
        throw usageError(`--file: ${path} is neither a ${binaryNames} nor a text`);
      return { name, text: content.toString('utf8') };
    }),
  );
}

function readNamed(flag: string, path: string, read: NamedFiles['read']): Promise<Buffer> {
  return read(path).catch((error: NodeJS.ErrnoException) => {
    throw usageError(`${flag}: ${fileFault(path, error)}`);
  });
}

function usageError(message: string): CommandError {
  return new CommandError(exitCodes.usage, message);
}
