import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import type { BatchBody } from '../../shared/api/files.js';
import { healthBody } from '../../shared/api/health.js';
import type { Clock } from '../../shared/clock.js';
import { formatCount, shellWord } from '../../shared/text/format.js';
import { escaped } from '../../shared/text/paint.js';
import { fileFault } from '../../shared/text/system-error.js';
import type { Client } from '../base/client.js';
import {
  addressFlags,
  type Command,
  type CommandArguments,
  type CommandContext,
  clientFor,
  type Flag,
  modelFlag,
} from '../base/command.js';
import { CommandError, exitCodes, InterruptedError, usageError } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';
import { AnswersFile } from '../batch/answers-file.js';
import { linesOf } from '../batch/json-lines.js';
import { Patience } from '../batch/patience.js';
import { type ImageReader, isBad, type LineDefaults, promptsIn, remainingPrompts } from '../batch/prompts.js';
import { type AnswerSink, BatchRun, type RunOptions } from '../batch/run.js';
import { type BatchesParts, findBatches, ServiceBatches } from '../batch/service-batches.js';
import { type BatchProgress, progressLine, startLine, summaryLines } from '../render/batch.js';
import { readImages, readSchema } from './ask.js';

const batchFlags = {
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
    description: 'prompts in the service at once; default: as many as its slots need',
  },
  'max-failures': { type: 'string', placeholder: '<n>', description: 'stop after this number of failures' },
  'retry-failed': { type: 'boolean', description: 'retry the prompts whose line in the output is an error' },
  ordered: { type: 'boolean', description: 'write answers in the order of the prompts' },
  unordered: { type: 'boolean', description: 'write answers in the order in which they arrive (the default)' },
  ...modelFlag,
  system: {
    type: 'string',
    short: 's',
    placeholder: '<text>',
    description: 'instructions for lines without a system text',
  },
  schema: {
    type: 'string',
    placeholder: '<file|json>',
    values: 'file',
    description: 'JSON Schema for the answers of lines without one',
  },
  quiet: { type: 'boolean', short: 'q', description: 'show no progress' },
  ...addressFlags,
} as const satisfies Record<string, Flag>;

export const batch: Command = {
  name: 'batch',
  synopsis: '<prompts.jsonl | ->',
  summary: 'send the prompts of a file, one per line, and write the answers to another file',
  flags: batchFlags,
  maxPositionals: 1,
  notes: [
    'A line is an object with prompt, or with messages as in the API of OpenAI; optionally with id, system, model, schema and effort, and for a prompt with images: paths, or objects as in POST /ask. All lines of a file are checked before the first prompt is sent.',
    'An answer is a line with id, line, response, structured, model, usage and request_id; a failure is a line with id, line and error. A line without an id gets one from its number and text.',
    'The prompts run in batches of the service, which continue without this command. A service without a durable store loses its batches when it ends: the command sends their prompts again, and says so.',
    'After Ctrl-C, a kill or a restart of the service, the same command continues. While the service is unreachable or refuses requests, the command waits. The exit code is 0 if every prompt has its answer, and 1 if one has failed, in this run or before.',
  ],
  examples: [
    'prompt-relay batch prompts.jsonl -o answers.jsonl',
    'prompt-relay batch prompts.jsonl -o answers.jsonl --retry-failed --max-failures 100',
    "jq -c '{prompt: .title}' books.jsonl | prompt-relay batch - -m opus | jq -r .response",
  ],
  run: async (args, context) => {
    const schema = await readSchema(args.value('schema'), context.files);
    const job = await jobFrom(args, context.terminal, schema);
    const client = await clientFor(args, context);
    return runBatch(job, await serviceFor(client), context);
  },
};

/** Options of the command line. */
interface BatchJob extends RunOptions {
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

async function runBatch(job: BatchJob, service: SendingOptions, context: CommandContext): Promise<number> {
  const { terminal, clock } = context;
  const { answers, sink } = await openSink(job, context);
  const onLost = (count: number) =>
    display.say(`The service has lost a batch, and the command sends its ${formatCount(count, 'prompt')} again.`);
  const run = new BatchRun(await senderFor(job, service, { sink, onLost }, context), sink, job);
  let skipped = answers?.size ?? 0; // some of these lines may have no prompt in the input
  const prompts = remainingPrompts(
    promptsIn(linesOf(bytesOf(job.input, terminal)), job.defaults),
    (id) => answers?.has(id) === true,
    (count) => {
      skipped = count;
    },
  );
  const display = new Display(job, terminal, clock, () => ({
    ...run.tally,
    total: job.total,
    skipped,
  }));
  const [stopping, cutting] = [new AbortController(), new AbortController()];
  using _ = terminal.onInterrupt(() => {
    if (stopping.signal.aborted) cutting.abort(new InterruptedError());
    else display.say('Stopping. Press Ctrl-C again to stop at once.');
    stopping.abort();
  });
  display.showStart(answers);
  try {
    await run.runPrompts(prompts, stopping.signal, cutting.signal);
  } catch (error) {
    if (!(error instanceof InterruptedError)) throw error;
  } finally {
    display.stopTicks();
    await sink.close();
  }
  display.summary(run, stopping.signal.aborted);
  if (stopping.signal.aborted) return exitCodes.interrupted;
  const staying = job.retriesFailed ? 0 : (answers?.failed ?? 0);
  return run.tally.failed + staying === 0 ? exitCodes.ok : exitCodes.failed;
}

async function openSink({ output, retriesFailed }: BatchJob, { terminal, clock }: CommandContext) {
  if (output !== null) {
    const answers = await AnswersFile.open(output, clock, retriesFailed);
    return { answers, sink: answers };
  }
  const none = async () => {};
  const sink: AnswerSink = { writeRecord: (record) => terminal.writeJson(record), sync: none, close: none };
  return { answers: null, sink };
}

interface SendingOptions {
  readonly client: Client;
  readonly slots: number;
  /** Batches of this client. */
  readonly batches: readonly BatchBody[];
}

/** Finds out what the service has. Rejects if it has no batches. */
async function serviceFor(client: Client): Promise<SendingOptions> {
  const { model_runtime: runtime } = (await client.getState('/health', healthBody)).observability;
  return { client, slots: runtime.max_concurrent, batches: await findBatches(client) };
}

async function senderFor(
  { output, retriesFailed: retriesFailures, concurrency: atOnce }: BatchJob,
  { client, slots, batches }: SendingOptions,
  reports: Pick<BatchesParts, 'sink' | 'onLost'>,
  { clock, files }: CommandContext,
): Promise<ServiceBatches> {
  const readFiles: ImageReader = (paths) => readImages(paths, files);
  const label = output === null ? null : await labelOf(output);
  const common = { client, clock, patience: new Patience(clock), readImages: readFiles, slots, atOnce };
  return new ServiceBatches({ ...common, ...reports, label, retriesFailures }, batches);
}

/** Returns a name for the output of a user on this machine, because other machines may have the same path. */
async function labelOf(output: string): Promise<string> {
  const parts = [hostname(), userInfo().uid, await realpath(output)];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

const tickMs = 1000;
/**
 * Number of ticks over which the rate is measured. If stderr is not a terminal, a line is written after each such
 * period.
 */
const rateTicks = 30;

/** Shows the progress of a batch. At a terminal, it redraws one line; otherwise it writes a line every 30 seconds. */
class Display {
  readonly #job: BatchJob;
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  readonly #now: () => Omit<BatchProgress, 'rate'>;
  readonly #beganMs: number;
  /** Numbers of ended prompts at the last ticks, oldest first. */
  readonly #samples: number[] = [];
  #ticks = 0;
  #reportedReason: string | null = null;
  #stopTicks = () => {};

  constructor(job: BatchJob, terminal: Terminal, clock: Clock, now: () => Omit<BatchProgress, 'rate'>) {
    this.#job = job;
    this.#terminal = terminal;
    this.#clock = clock;
    this.#now = now;
    this.#beganMs = clock.monotonicMs();
  }

  /** Whether the progress can be redrawn in place. Answers on the same terminal would be overwritten. */
  get #isLine(): boolean {
    return this.#terminal.isStderrTty && !(this.#job.output === null && this.#terminal.isStdoutTty);
  }

  showStart(answers: AnswersFile | null): void {
    const { repaired = 0, answered = 0, failed = 0 } = answers ?? {};
    if (repaired > 0) this.say(`Removed an unfinished line of ${formatCount(repaired, 'byte')} from the output.`);
    this.say(startLine(this.#job, { answered, failed }));
    this.#stopTicks = this.#clock.every(tickMs, () => this.#tick());
    this.#tick();
  }

  stopTicks(): void {
    this.#stopTicks();
    if (!this.#job.isQuiet) this.#terminal.showProgress('');
  }

  say(sentence: string): void {
    if (this.#job.isQuiet) return;
    if (this.#isLine) this.#terminal.showProgress('');
    this.#terminal.sentences(sentence);
  }

  summary(run: BatchRun, isInterrupted: boolean): void {
    const progress = this.#progress();
    for (const line of summaryLines(progress, this.#clock.monotonicMs() - this.#beganMs)) this.say(line);
    const { commandLine, output } = this.#job;
    if (run.hasGivenUp) this.say('Stopped: as many prompts have failed as --max-failures allows.');
    if ((isInterrupted || run.hasGivenUp) && output !== null) this.#hint('To resume', commandLine);
    if (run.tally.failed > 0 && output !== null)
      this.#hint('To retry the failed prompts', `${commandLine} --retry-failed`);
  }

  #hint(what: string, command: string): void {
    if (!this.#job.isQuiet) this.#terminal.message(`${what}: ${command}`);
  }

  #tick(): void {
    if (this.#job.isQuiet) return;
    const { answered, failed, ready, heldBecause } = this.#now();
    this.#samples.push(answered + failed + ready);
    if (this.#samples.length > rateTicks + 1) this.#samples.shift();
    if (this.#isLine) this.#terminal.showProgress(progressLine(this.#progress(), this.#terminal.messagePaint));
    else if (heldBecause !== this.#reportedReason || (++this.#ticks % rateTicks === 0 && this.#ticks > 0)) {
      this.#reportedReason = heldBecause;
      this.#terminal.message(progressLine(this.#progress(), this.#terminal.messagePaint));
    }
  }

  #progress(): BatchProgress {
    const [first = 0] = this.#samples;
    const last = this.#samples.at(-1) ?? 0;
    const seconds = ((this.#samples.length - 1) * tickMs) / 1000;
    return { ...this.#now(), rate: last > first ? (last - first) / seconds : null };
  }
}

/** Reads and checks the options. Throws a CommandError, also for invalid lines of the input file. */
async function jobFrom(args: CommandArguments, terminal: Terminal, schema: unknown): Promise<BatchJob> {
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
  throw new CommandError(exitCodes.refused, `batch: ${formatCount(bad, 'bad line')}${more}: no prompt was sent`);
}

function bytesOf(input: string, terminal: Terminal): AsyncIterable<Buffer> {
  return input === '-' ? terminal.stdin : createReadStream(input);
}
