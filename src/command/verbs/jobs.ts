import {
  deletedJob,
  type JobBody,
  type JobResult,
  jobBody,
  jobList,
  jobResult,
  type ListedJob,
} from '../../shared/api/jobs.js';
import { type StatusBody, statusBody } from '../../shared/api/status.js';
import { formatCount, formatDuration, formatNumber } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import type { Client } from '../base/client.js';
import { alignColumns } from '../base/columns.js';
import {
  addressFlags,
  type Command,
  type CommandArguments,
  type CommandContext,
  clientFor,
  jsonFlag,
  show,
} from '../base/command.js';
import { CommandError, exitCodes, InterruptedError, ServiceError, usageError } from '../base/errors.js';
import { collectJob, printAnswer } from './answer.js';

const jobsBody = statusBody.pick({ slots: true, queue: true, background_jobs: true });

export const jobs: Command = {
  name: 'jobs',
  synopsis: '[show | follow | cancel] [id]',
  summary: 'show running jobs, the queue, and your own jobs',
  flags: {
    all: {
      type: 'boolean',
      description: 'list the jobs of all clients with their ids; needs a key with the scope admin',
    },
    why: { type: 'string', placeholder: '<id>', description: 'say why a job has its model, and why it waited' },
    ...jsonFlag,
    ...addressFlags,
  },
  maxPositionals: 2,
  words: ['show', 'follow', 'cancel'],
  notes: [
    'The list shows your own jobs with their ids: waiting and running jobs, then background jobs. With --all, it shows the jobs of all clients.',
    '"show" with an id prints that job, and the answer of a background job. "follow" waits for the answer of a background job and prints it, as "ask" does. "cancel" ends a waiting or running job, and deletes the record of an ended background job.',
    "If the service has API keys, only a key with the scope admin can see the names and ids of other clients' jobs.",
    '"prompt-relay cancel" ends several jobs, and deletes no record.',
  ],
  examples: [
    'prompt-relay jobs',
    'prompt-relay jobs show kUCv4aHbxv0GAEvJ2iQNwFcL',
    'prompt-relay jobs follow kUCv4aHbxv0GAEvJ2iQNwFcL',
  ],
  run: async (args, context) => {
    const [action, id, ...rest] = args.positionals;
    const explained = args.value('why');
    if (explained !== undefined) return explain(explained, args, context);
    if (action === undefined) return list(args, context);
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
    if (act === undefined || rest.length > 0) throw usageError('jobs', 'the action must be show, follow or cancel');
    if (id === undefined || id === '') throw usageError('jobs', `${action}: name the job`);
    return act(await clientFor(args, context), `/jobs/${encodeURIComponent(id)}`, args, context);
  },
};

async function explain(id: string, args: CommandArguments, context: CommandContext): Promise<number> {
  const { why = [] } = await (await clientFor(args, context)).getState(`/jobs/${encodeURIComponent(id)}`, jobBody);
  const known = why.length === 0 ? ['The service does not know it any more.'] : why;
  return show(args, context.terminal, { why }, () => known.map(escaped));
}

async function list(args: CommandArguments, context: CommandContext): Promise<number> {
  const client = await clientFor(args, context);
  const now = await client.getState('/status', jobsBody).catch(explainMissingStatus);
  const isOfAll = args.has('all');
  const page = isOfAll ? await client.getState('/jobs?all=true', jobList) : await client.getOptional('/jobs', jobList);
  const background = page?.jobs ?? [];
  const nowMs = context.clock.now();
  const hasMore = page !== null && page.next_cursor !== null;
  return show(args, context.terminal, { ...now, background }, (paint) => [
    ...renderJobs(now, nowMs, paint),
    ...renderListedJobs(isOfAll ? 'all' : 'yours', background, hasMore, nowMs, paint),
  ]);
}

function explainMissingStatus(error: unknown): never {
  if (!(error instanceof ServiceError) || error.code !== 'not_found') throw error;
  throw new CommandError(error.exitCode, `this service does not report which jobs run and wait: ${error.message}`);
}

type JobAction = (client: Client, path: string, args: CommandArguments, context: CommandContext) => Promise<number>;

const actions: Readonly<Record<string, JobAction>> = {
  show: async (client, path, args, { terminal, clock }) => {
    const job = await client.getState(path, jobBody);
    if (args.has('json')) await terminal.writeJson(job);
    else await showJob(job, terminal, clock.now());
    return exitCodes.ok;
  },
  follow: async (client, path, args, context) => {
    const ending = new AbortController();
    using _ = context.terminal.onInterrupt(() => ending.abort(new InterruptedError()));
    const events = () => client.followToEnd(`${path}/events`, ending.signal, context.clock);
    const answerOf = (data: string) => {
      const result = client.parse(data, jobResult);
      return { response: responseOf(result), result };
    };
    if (args.has('json')) await context.terminal.writeJson((await collectJob(client, events(), answerOf)).result);
    else await printAnswer((printer) => collectJob(client, events(), answerOf, printer), context);
    return exitCodes.ok;
  },
  cancel: async (client, path, args, { terminal }) => {
    const fate = await client.delete(path, deletedJob);
    if (args.has('json')) await terminal.writeJson(fate);
    else await terminal.writeLine(fate.deleted ? 'forgotten: it had ended' : `${fate.status ?? 'cancelled'}`);
    return exitCodes.ok;
  },
};

/** Command that cancels jobs. Unlike `jobs cancel`, it never deletes an answer. */
export const cancel: Command = {
  name: 'cancel',
  synopsis: '<id> ...',
  summary: 'end waiting or running jobs',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: Number.POSITIVE_INFINITY,
  notes: [
    '"prompt-relay jobs" shows the ids. You can end your own waiting and running jobs, in the background or not; a key with the scope admin can end the jobs of all clients, which "prompt-relay jobs --all" lists. An ended background job does not change.',
    'If several ids are given, all of them are tried; the exit code is that of the first failure.',
  ],
  examples: ['prompt-relay cancel 17-f3Kx82Qa', 'prompt-relay cancel jUCv4aHbxv0GAEvJ2iQNwFcL 18-f3Kx82Qa'],
  run: async (args, context) => {
    if (args.positionals.length === 0 || args.positionals.includes('')) throw usageError('cancel', 'name the jobs');
    const client = await clientFor(args, context);
    let exitCode: number = exitCodes.ok;
    for (const id of args.positionals) {
      try {
        await cancelOne(client, id, args, context);
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'not_found') throw error; // all other IDs would fail too
        const text = `${context.terminal.messagePaint.red('prompt-relay:')} ${escaped(id)}: ${error.message}`;
        context.terminal.sentences(text);
        if (exitCode === exitCodes.ok) exitCode = error.exitCode;
      }
    }
    return exitCode;
  },
};

async function cancelOne(
  client: Client,
  id: string,
  args: CommandArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const fate = await client.delete(`/jobs/${encodeURIComponent(id)}?keep_ended=true`, deletedJob);
  if (args.has('json')) return terminal.writeJson(fate);
  const { status } = fate;
  await terminal.writeLine(`${id}  ${status === 'cancelled' ? status : `${status}: it had ended`}`);
}

async function showJob(job: JobBody, terminal: CommandContext['terminal'], now: number): Promise<void> {
  await terminal.writeLines(renderShownJob(job, now, terminal.paint));
  if (job.error !== undefined) await terminal.writeUntrusted(`\n${new ServiceError(job.error).message}\n`);
  if (job.result === undefined) return;
  const response = responseOf(job.result);
  await terminal.writeUntrusted(`\n${response}${response.endsWith('\n') ? '' : '\n'}`);
}

/** Returns the text of an answer in the format of any endpoint. */
function responseOf(result: JobResult): string {
  if ('response' in result && typeof result.response === 'string') return result.response;
  const { output } = result as { readonly output?: readonly OutputItem[] };
  return (output ?? [])
    .map((item) => item.arguments ?? (item.content ?? []).map(({ text }) => text ?? '').join(''))
    .join('');
}

/** Output item of /v1/responses. */
interface OutputItem {
  readonly arguments?: string;
  readonly content?: readonly { readonly text?: string }[];
}

/** Longest title in a list, in characters. */
const askedLength = 40;

type BackgroundNow = StatusBody['background_jobs'];

interface JobsNow extends Pick<StatusBody, 'slots'> {
  readonly queue: Pick<StatusBody['queue'], 'max' | 'waiting' | 'clients'>;
  readonly background_jobs: BackgroundNow;
}

/**
 * Formats the output of `jobs`: running jobs, longest first, then the waiting clients and the counts of background
 * jobs.
 */
export function renderJobs(
  { slots, queue, background_jobs: background }: JobsNow,
  now: number,
  paint: Paint,
): string[] {
  const running = slots.running.map(({ job, id, client, operation, model, started_at: since }) => [
    escaped(id ?? String(job)),
    nameOf(client),
    operation,
    escaped(model ?? 'default'),
    ageOf(since, now),
  ]);
  const waiting = queue.clients.map(({ client, waiting: count, oldest_since: since }) => [
    nameOf(client),
    formatNumber(count),
    ageOf(since, now),
  ]);
  return [
    `${paint.bold('running')}  ${formatNumber(slots.running.length)} of ${formatCount(slots.max, 'slot')}`,
    ...table(['job', 'client', 'operation', 'model', 'for'], running, paint),
    `${paint.bold('waiting')}  ${formatNumber(queue.waiting)} of ${formatNumber(queue.max)}`,
    ...table(['client', 'jobs', 'oldest for'], waiting, paint),
    `${paint.bold('background')}  ${loadText(background)}`,
  ];
}

function loadText({ max, waiting, running }: BackgroundNow): string {
  return `${formatNumber(waiting)} of ${formatNumber(max)} waiting, ${formatNumber(running)} running`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[], paint: Paint): string[] {
  if (rows.length === 0) return [];
  const [heading = '', ...lines] = alignColumns([head, ...rows]);
  return [paint.dim(heading), ...lines].map((line) => `  ${line}`);
}

/** Returns a client's name. Names come from the service, so control characters are escaped. */
function nameOf(client: string | null): string {
  return client === null ? '–' : escaped(client);
}

/**
 * Formats the jobs of the caller or of all clients, in the order of the service. Returns no lines if there are no jobs.
 */
export function renderListedJobs(
  title: 'yours' | 'all',
  jobs: readonly ListedJob[],
  hasMore: boolean,
  now: number,
  paint: Paint,
): string[] {
  if (jobs.length === 0) return [];
  const open = jobs.filter(({ ended_at }) => ended_at === null).length;
  const clientCell = (name: string | undefined) => (title === 'all' ? [nameOf(name ?? null)] : []);
  const rows = jobs.map((job) => {
    const what = [escaped(job.job_id), ...clientCell(job.client), operationOf(job)];
    return [...what, statusOf(job), ageOf(job.created_at, now), ...(title === 'all' ? [] : [askedIn(job)])];
  });
  const [heading = '', ...lines] = alignColumns([
    ['id', ...clientCell('client'), 'operation', 'status', 'age', ...(title === 'all' ? [] : ['asked'])],
    ...rows,
  ]);
  const count = `${formatNumber(jobs.length)}${hasMore ? ' or more' : ''}, ${formatNumber(open)} open`;
  return [`${paint.bold(title)}  ${count}`, ...[paint.dim(heading), ...lines].map((line) => `  ${line}`)];
}

function operationOf({ operation, background }: ListedJob): string {
  return background ? `${operation}, background` : operation;
}

/** Returns the shortened title of a job; empty if the job has none. */
function askedIn({ title = '' }: ListedJob): string {
  const characters = [...title];
  return escaped(characters.length > askedLength ? `${characters.slice(0, askedLength - 1).join('')}…` : title);
}

/** Formats one job without its answer. */
export function renderShownJob(job: JobBody, now: number, paint: Paint): string[] {
  const { created_at: created, started_at: started, ended_at: ended } = job;
  const waited = durationOf(created, started ?? ended, now);
  const rows = [
    ['id', escaped(job.job_id)],
    ...(job.title ? [['asked', escaped(job.title)]] : []),
    ['operation', operationOf(job)],
    ['status', statusOf(job)],
    ['sent', `${ageOf(created, now)} ago`],
    ['waited', waited],
    ...(started === null ? [] : [['ran', durationOf(started, ended, now)]]),
  ];
  return alignColumns(rows.map(([name = '', value = '']) => [name, value])).map((line) =>
    line.replace(/^\w+/, (name) => paint.bold(name)),
  );
}

function statusOf({ status, position, cancelled_by: by }: ListedJob): string {
  if (by !== undefined) return `${status} by an ${by}`;
  return position === null ? status : `${status}, place ${formatNumber(position)}`;
}

function ageOf(since: string, now: number): string {
  return durationOf(since, null, now);
}

function durationOf(from: string, to: string | null, now: number): string {
  return formatDuration(Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from)));
}
