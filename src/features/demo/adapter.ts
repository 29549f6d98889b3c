import { join } from 'node:path';
import { z } from 'zod';
import { JsonLines, jsonOf } from '../../primary/cli/adapters/common/lines.js';
import {
  type Adapter,
  type Attachment,
  type CommandLine,
  type Consult,
  type Decoder,
  type DecoderEvent,
  jsonPieces,
  jsonUnits,
  type LaunchOptions,
  type ModelEntry,
  type ProgramVersion,
  type TextDelta,
  type ToolCall,
  type ToolOffer,
  type Turn,
  type TurnEnd,
  type TurnEvent,
  type TurnFailed,
  type TurnInput,
  unknownUsage,
} from '../../primary/cli/contract/adapter.js';
import type { CreateCliAdapter } from '../../primary/cli/contract/adapter-family.js';
import { cliReasons } from '../../shared/errors.js';

const maxLineLength = 1024 * 1024;

/** Optional number of the turn that a line answers. */
const turnLine = z.object({ turn: z.number().optional() });

const delta = z
  .object({ type: z.literal('delta'), text: z.string() })
  .transform(({ text }): TextDelta => ({ type: 'text-delta', text }));

const thought = z.object({ type: z.literal('thought'), text: z.string() });

const usage = z
  .object({ input_tokens: z.int().nonnegative(), output_tokens: z.int().nonnegative() })
  .transform((used) => ({ ...unknownUsage, inputTokens: used.input_tokens, outputTokens: used.output_tokens }));

const end = z
  .object({ type: z.literal('end'), model: z.string(), usage })
  .transform(({ model, usage }): TurnEnd => ({ type: 'turn-end', text: null, model, usage }));

const error = z
  .object({ type: z.literal('error'), reason: z.enum(cliReasons).catch('other'), message: z.string() })
  .transform(({ reason, message }): TurnFailed => {
    const failed = { type: 'turn-failed', reason, message } as const;
    return reason === 'auth' ? { ...failed, scope: 'account' } : failed; // a code, so the account can be blamed
  });

const call = z
  .object({ type: z.literal('call'), id: z.string(), name: z.string(), input: z.unknown() })
  .transform(({ id, name, input }) => ({ type: 'call' as const, call: { id, name, input: JSON.stringify(input) } }));

const lineSchema = z.discriminatedUnion('type', [delta, thought, call, end, error]);

const program = join(__dirname, 'program', 'main.js');

export const createDemo: CreateCliAdapter = ({ command }) => demoAdapter(command ?? [process.execPath, program]);

/** Adapter for the demo model's program, which reads and writes JSON lines, with many turns per process. */
export function demoAdapter(command: readonly [string, ...string[]]): Adapter {
  return {
    name: 'demo',
    command,
    credentialVariable: null,
    env: {},
    homeLogin: null,
    models: ['eliza', 'echo'],
    async learn(consult): Promise<ProgramVersion> {
      const { stdout } = await consult(['--version']);
      return { version: /^prompt-relay-demo (\S+)/.exec(stdout)?.[1] ?? null, ...programVersion };
    },
  };
}

function plan({ model }: LaunchOptions): CommandLine {
  return { args: model === null ? [] : ['--model', model], files: [] };
}

const extras = {
  tools: 'parallel',
  toolChoice: true,
  thoughts: true,
  image: ({ mediaType, data }: Attachment) => ({ media_type: mediaType, data }),
  schema: (schema: string): unknown => JSON.parse(schema),
} as const;

function write(turn: Turn, number: number): TurnInput {
  const { text, images = [], system, schema, history, results = [], offer } = turn;
  const instruction = system === null ? [] : [{ type: 'system', text: system }];
  const replay = history.map(({ role, text, calls }) => ({ type: 'replay', role, text, ...(calls && { calls }) }));
  const question = {
    ...{ type: 'user', text },
    ...(images.length > 0 && { images: images.map(extras.image) }),
    ...(schema !== null && { schema: extras.schema(schema) }),
    ...(offer !== undefined && toolsOf(offer)),
    ...(results.length > 0 && { results: results.map(({ id, text, isError }) => ({ id, text, is_error: isError })) }),
    turn: number,
  };
  return { ...inputOf([...instruction, ...replay, question]), stdin: 'keep-open' };
}

/** Size from which the input of a turn is made in pieces. */
const longUnits = 256 * 1024;

function inputOf(lines: readonly object[]): Pick<TurnInput, 'text' | 'pieces'> {
  if (jsonUnits(lines) < longUnits) return { text: lines.map((line) => `${JSON.stringify(line)}\n`).join('') };
  return { text: '', pieces: linesInPieces(lines) };
}

function* linesInPieces(lines: readonly object[]): Generator<string> {
  for (const line of lines) {
    yield* jsonPieces(line);
    yield '\n';
  }
}

function toolsOf({ tools, choice }: ToolOffer): object {
  if (choice === 'none') return {};
  const must = choice === 'required' || (typeof choice === 'string' ? false : choice.name);
  return { tools: tools.map(({ name, schema }) => ({ name, schema: JSON.parse(schema) })), must };
}

const modelsLine = z.object({
  type: z.literal('models'),
  models: z.array(z.object({ id: z.string(), name: z.string(), description: z.string(), default: z.boolean() })),
});

async function listModels(consult: Consult): Promise<readonly ModelEntry[] | null> {
  const { stdout } = await consult([], '{"type":"models"}\n');
  return modelsLine.safeParse(jsonOf(stdout.split('\n', 1)[0] ?? '')).data?.models ?? null;
}

async function check(consult: Consult): Promise<string | null> {
  return (await listModels(consult)) === null ? 'the demo model does not answer' : null;
}

function decoder(): Decoder<DecoderEvent> {
  let turn: number | undefined;
  let calls: ToolCall[] = [];
  const eventsOf = (value: unknown): readonly TurnEvent[] => {
    const { data } = lineSchema.safeParse(value);
    if (data === undefined) return []; // unknown message
    const named = turnLine.safeParse(value).data?.turn ?? turn;
    if (turn !== undefined && named !== turn) return [{ type: 'stray' }];
    if (data.type === 'turn-end') return [calls.length === 0 ? data : { ...data, calls: calls.splice(0) }];
    if (data.type === 'thought') return [{ type: 'thought-delta', text: data.text }, { type: 'thought-end' }];
    if (data.type !== 'call') return [data];
    calls.push(data.call);
    const { id, name, input } = data.call;
    return [
      { type: 'call-start', id, name },
      { type: 'call-delta', text: input },
    ];
  };
  const lines = new JsonLines(jsonOf, eventsOf, maxLineLength);
  return {
    hasBegun: true, // the program writes only answers
    begin(number) {
      turn = number;
      calls = [];
    },
    read: (chunk) => lines.read(chunk),
    exit: (exit) => lines.exit(exit),
  };
}

const protocol = () => ({ writer: { write }, decoder: decoder() });

const programVersion = { extras, plan, protocol, check, listModels };
