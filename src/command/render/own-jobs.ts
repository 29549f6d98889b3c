import type { JobBody, ListedJob } from '../../shared/api/jobs.js';
import { alignColumns, formatDuration, formatNumber } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';

/** The background jobs of the caller, newest first; nothing where there are none. */
export function renderOwnJobs(jobs: readonly ListedJob[], hasMore: boolean, now: number, paint: Paint): string[] {
  if (jobs.length === 0) return [];
  const open = jobs.filter(({ ended_at }) => ended_at === null).length;
  const rows = jobs.map((job) => [escaped(job.job_id), job.operation, statusOf(job), ageOf(job.created_at, now)]);
  const [heading = '', ...lines] = alignColumns([['id', 'operation', 'status', 'age'], ...rows]);
  const count = `${formatNumber(jobs.length)}${hasMore ? ' or more' : ''}, ${formatNumber(open)} of them open`;
  return [`${paint.bold('yours')}  ${count}`, ...[paint.dim(heading), ...lines].map((line) => `  ${line}`)];
}

/** What is known of one, without its answer. */
export function renderShownJob(job: JobBody, now: number, paint: Paint): string[] {
  const { created_at: created, started_at: started, ended_at: ended } = job;
  const waited = durationOf(created, started ?? ended, now);
  const rows = [
    ['id', escaped(job.job_id)],
    ['operation', job.operation],
    ['status', statusOf(job)],
    ['sent', `${ageOf(created, now)} ago`],
    ['waited', waited],
    ...(started === null ? [] : [['ran', durationOf(started, ended, now)]]),
  ];
  return alignColumns(rows.map(([name = '', value = '']) => [name, value])).map((line) =>
    line.replace(/^\w+/, (name) => paint.bold(name)),
  );
}

function statusOf({ status, position }: ListedJob): string {
  return position === null ? status : `${status}, place ${formatNumber(position)}`;
}

function ageOf(since: string, now: number): string {
  return durationOf(since, null, now);
}

function durationOf(from: string, to: string | null, now: number): string {
  return formatDuration(Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from)));
}
