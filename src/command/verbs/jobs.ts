import { deletedJob, type JobBody, type JobResult, jobBody, jobList, jobResult } from '../../shared/api/jobs.js';
import { statusBody } from '../../shared/api/status.js';
import { type Clock, delay } from '../../shared/clock.js';
import type { Client } from '../base/client.js';
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
import type { ServerEvent } from '../base/http.js';
import { renderJobs, renderOwnJobs, renderShownJob } from '../render/jobs.js';
import { collectJob, printAnswer } from './answer.js';

/** An older service sends no figures of background jobs, and fewer of the queue. */
const jobsBody = statusBody
  .pick({ slots: true, queue: true, background_jobs: true })
  .partial({ background_jobs: true })
  .extend({ queue: statusBody.shape.queue.partial({ full_since: true, refused_last_5_minutes: true }) });

export const jobs: Command = {
  name: 'jobs',
  synopsis: '[show | follow | cancel] [id]',
  summary: 'show the jobs that run now, the queue, and your background jobs',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: 2,
  words: ['show', 'follow', 'cancel'],
  notes: [
    'With "show" and the id of a background job, it shows that job and its answer; with "follow" it waits for the answer and prints it, as "ask" does; with "cancel" it ends a job that waits or runs, and forgets one that has ended.',
    'Where there are API keys, only one with the scope admin shows the names of clients. The background jobs are those of the one who asks.',
  ],
  examples: [
    'prompt-relay jobs',
    'prompt-relay jobs show kUCv4aHbxv0GAEvJ2iQNwFcL',
    'prompt-relay jobs follow kUCv4aHbxv0GAEvJ2iQNwFcL',
  ],
  run: async (args, context) => {
    const [action, id, ...rest] = args.positionals;
    if (action === undefined) return list(args, context);
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
    if (act === undefined || rest.length > 0) throw usageError('jobs', 'say show, follow or cancel');
    if (id === undefined || id === '') throw usageError('jobs', `${action}: name the job`);
    return act(await clientFor(args, context), `/jobs/${encodeURIComponent(id)}`, args, context);
  },
};

async function list(args: CommandArguments, context: CommandContext): Promise<number> {
  const client = await clientFor(args, context);
  const now = await client.getState('/status', jobsBody);
  const own = await client.getOptional('/jobs', jobList);
  const background = own?.jobs ?? [];
  const nowMs = context.clock.now();
  const hasMore = own !== null && own.next_cursor !== null;
  return show(args, context.terminal, { ...now, background }, (paint) => [
    ...renderJobs(now, nowMs, paint),
    ...renderOwnJobs(background, hasMore, nowMs, paint),
  ]);
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
    const events = () => followed(client, `${path}/events`, ending.signal, context.clock);
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

async function showJob(job: JobBody, terminal: CommandContext['terminal'], now: number): Promise<void> {
  await terminal.writeLines(renderShownJob(job, now, terminal.paint));
  if (job.error !== undefined) await terminal.writeUntrusted(`\n${new ServiceError(job.error).message}\n`);
  if (job.result === undefined) return;
  const response = responseOf(job.result);
  await terminal.writeUntrusted(`\n${response}${response.endsWith('\n') ? '' : '\n'}`);
}

/** The text of an answer, in the form of any endpoint. */
function responseOf(result: JobResult): string {
  if ('response' in result && typeof result.response === 'string') return result.response;
  const { output } = result as { readonly output?: readonly OutputItem[] };
  return (output ?? [])
    .map((item) => item.arguments ?? (item.content ?? []).map(({ text }) => text ?? '').join(''))
    .join('');
}

/** An item of /v1/responses. */
interface OutputItem {
  readonly arguments?: string;
  readonly content?: readonly { readonly text?: string }[];
}

/** How often it reopens a stream that brings nothing new, and the pause before each try. */
const maxTries = 10;
const betweenMs = 500;
const lastEvents = ['done', 'error', 'cancelled'];

/** The events of a background job. Continues after a break of the stream, as when a worker is replaced. */
export async function* followed(
  client: Client,
  path: string,
  signal: AbortSignal,
  clock: Clock,
): AsyncGenerator<ServerEvent> {
  let after: string | undefined;
  for (let tries = 0; tries < maxTries; tries++) {
    try {
      for await (const event of client.follow(path, after, signal)) {
        if (event.id !== after) tries = 0;
        after = event.id;
        yield event;
        if (lastEvents.includes(event.event)) return;
      }
    } catch (error) {
      const isCut = error instanceof CommandError && error.exitCode === exitCodes.unavailable;
      if (!isCut || after === undefined || tries === maxTries - 1) throw error;
    }
    signal.throwIfAborted();
    await delay(clock, betweenMs);
  }
}
