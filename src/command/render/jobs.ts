import type { JobBody, ListedJob } from '../../shared/api/jobs.js';
import type { StatusBody } from '../../shared/api/status.js';
import { alignColumns, formatCount, formatDuration, formatNumber } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';

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
