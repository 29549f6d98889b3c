import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import type { HealthBody } from '../../shared/api/health.js';
import { formatCount, shellWord } from '../../shared/text/format.js';
import { escaped } from '../../shared/text/paint.js';
import { fileFault } from '../../shared/text/system-error.js';
import { addressFlags, type CommandArguments, type Flag, modelFlag } from '../base/command.js';
import { CommandError, exitCodes, usageError } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';
import { linesOf } from './json-lines.js';
import { isBad, type LineDefaults, promptsIn } from './prompts.js';
import type { RunOptions } from './run.js';

export const batchFlags = {
  output: {
    type: 'string',
    short: 'o',
    placeholder: '<file>',
    values: 'file',
    description: 'file for the answers; prompts that already have an answer in it are skipped; default: stdout',
  },
  concurrency: {
    type: 'string',
    short: 'c',
    placeholder: '<n>',
    description: 'number of prompts sent at once; default: twice the slots',
  },
  'max-failures': { type: 'string', placeholder: '<n>', description: 'stop after this number of failures' },
  'retry-failed': { type: 'boolean', description: 'retry the prompts whose line in the output is an error' },
  ordered: { type: 'boolean', description: 'write answers in the order of the prompts' },
  unordered: { type: 'boolean', description: 'write answers in the order in which they arrive (the default)' },
  ...modelFlag,
  system: { type: 'string', short: 's', placeholder: '<text>', description: 'instructions for lines without any' },
  schema: {
    type: 'string',
    placeholder: '<file|json>',
    values: 'file',
    description: 'JSON Schema for the answers of lines without one',
  },
  quiet: { type: 'boolean', short: 'q', description: 'show no progress' },
  ...addressFlags,
} as const satisfies Record<string, Flag>;

/** Options of the command line. */
export interface BatchJob extends Omit<RunOptions, 'concurrency'> {
  readonly input: string;
  readonly output: string | null;
  readonly concurrency: number | null;
  readonly retriesFailed: boolean;
  readonly isQuiet: boolean;
  readonly defaults: LineDefaults;
  /** Number of lines with a prompt; null if the input can be read only once. */
  readonly total: number | null;
  readonly commandLine: string;
}

type RoomForJobs = Pick<HealthBody['observability']['model_runtime'], 'max_concurrent' | 'max_queue'>;

/**
 * Returns the default concurrency: for each slot one running job, and one waiting job that follows it. The waiting jobs
 * are at most a quarter of the queue, the share of one client while other clients are active.
 */
export function usualConcurrency({ max_concurrent: slots, max_queue: places }: RoomForJobs): number {
  return slots + Math.min(slots, Math.ceil(places / 4));
}

/** Reads and checks the options. Throws a CommandError, also for invalid lines of the input file. */
export async function jobFrom(args: CommandArguments, terminal: Terminal, schema: unknown): Promise<BatchJob> {
  const [input] = args.positionals;
  if (input === undefined) throw usageError('batch', 'name the file with the prompts, or - for stdin');
  if (args.has('ordered') && args.has('unordered')) throw usageError('batch', 'use --ordered or --unordered, not both');
  const output = args.value('output') ?? '-';
  const concurrency = numberOf(args, 'concurrency');
  const maxFailures = numberOf(args, 'max-failures') ?? Number.POSITIVE_INFINITY;
  const defaults = {
    model: args.value('model'),
    system: args.value('system'),
    schema,
  };
  if (args.has('retry-failed') && output === '-')
    throw usageError('batch', '--retry-failed needs a file: name it with -o');
  await refuseSameFile(input, output);
  return {
    input,
    output: output === '-' ? null : output,
    concurrency,
    maxFailures,
    isOrdered: args.has('ordered'),
    retriesFailed: args.has('retry-failed'),
    isQuiet: args.has('quiet'),
    defaults,
    total: await checkedTotal(input, defaults, terminal),
    commandLine: ['prompt-relay batch', shellWord(input), '-o', shellWord(output)].join(' '),
  };
}

function numberOf(args: CommandArguments, flag: string): number | null {
  const text = args.value(flag);
  if (text === undefined) return null;
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw usageError('batch', `--${flag}: must be a whole number from 1 to 999999`);
}

async function refuseSameFile(input: string, output: string): Promise<void> {
  const [from, to] = await Promise.all([input, output].map((path) => realpath(path).catch(() => null)));
  if (from !== null && from === to) throw usageError('batch', 'the output must not be the file of the prompts');
}

const maxNamed = 10;

/** Checks all prompts of a file and returns their number; null for stdin and pipes, which can be read only once. */
async function checkedTotal(input: string, defaults: LineDefaults, terminal: Terminal): Promise<number | null> {
  if (input === '-') return null;
  const found = await stat(input).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(exitCodes.usage, `batch: ${fileFault(input, error)}`);
  });
  if (!found.isFile()) return null;
  let [total, bad] = [0, 0];
  for await (const prompt of promptsIn(linesOf(bytesOf(input, terminal)), defaults)) {
    total++;
    if (!isBad(prompt)) continue;
    if (++bad <= maxNamed)
      terminal.message(`${terminal.messagePaint.red('fault')}  line ${prompt.line}: ${escaped(prompt.fault)}`);
  }
  if (bad === 0) return total;
  const more = bad > maxNamed ? `, of which the first ${maxNamed} are shown` : '';
  throw new CommandError(exitCodes.refused, `batch: ${formatCount(bad, 'bad line')}${more}: nothing was asked`);
}

export function bytesOf(input: string, terminal: Terminal): AsyncIterable<Buffer> {
  return input === '-' ? terminal.stdin : createReadStream(input);
}
