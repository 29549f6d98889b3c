import { formatCount, formatDuration, formatNumber } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';

/** Progress of one run of a batch. */
export interface Tally {
  readonly answered: number;
  readonly failed: number;
  /** Number of answers that the service has, but that are not written yet. */
  readonly ready: number;
  readonly heldBecause: string | null;
}

/** Progress of a batch, including earlier runs. */
export interface BatchProgress extends Tally {
  /** Number of lines with a prompt; null if unknown until stdin ends. */
  readonly total: number | null;
  /** Number of prompts that the output answered before this run. */
  readonly skipped: number;
  /** Prompts ended per second; null if unknown. */
  readonly rate: number | null;
}

const barColumns = 20;

/** Formats the progress as one line, such as `████░░░░  1,234 of 10,000 · 4.1/s · 3 failed · 35 min left`. */
export function progressLine(progress: BatchProgress, paint: Paint): string {
  const { total, failed, rate, heldBecause } = progress;
  const done = doneOf(progress);
  const left = total !== null && rate !== null && rate > 0 ? ((total - done) / rate) * 1000 : null;
  const parts = [
    total === null ? `${formatNumber(done)} done` : `${formatNumber(done)} of ${formatNumber(total)}`,
    ...(rate === null ? [] : [`${formatNumber(rate)}/s`]),
    ...(failed === 0 ? [] : [paint.red(`${formatNumber(failed)} failed`)]),
    ...(heldBecause !== null
      ? [paint.yellow(`waiting: ${escaped(heldBecause)}`)]
      : left === null || left === 0
        ? []
        : [`${formatDuration(left)} left`]),
  ];
  return `${total === null ? '' : `${barOf(total === 0 ? 1 : done / total)}  `}${parts.join(' · ')}`;
}

function barOf(share: number): string {
  const full = Math.floor(Math.min(1, share) * barColumns);
  return '█'.repeat(full) + '░'.repeat(barColumns - full);
}

function doneOf({ skipped, answered, failed, ready }: BatchProgress): number {
  return skipped + answered + failed + ready;
}

/** Formats the start of a run, with the answers and failures that the output already has. */
export function startLine(
  job: { readonly total: number | null; readonly concurrency: number | null; readonly retriesFailed: boolean },
  { answered, failed }: Pick<Tally, 'answered' | 'failed'>,
): string {
  const known = job.total === null ? '' : `${formatCount(job.total, 'prompt')}, `;
  const there = answered + failed === 0 ? '' : ` ${formatNumber(answered)} already answered`;
  const again = job.retriesFailed ? 'retried' : 'not retried';
  const way = job.concurrency === null ? 'in batches of the service' : `${formatNumber(job.concurrency)} at once`;
  return `${known}${way}.${there}${failed === 0 ? '' : `, ${formatCount(failed, 'failure')} ${again}`}`;
}

export function summaryLines(progress: BatchProgress, ms: number): string[] {
  const { answered, failed, skipped, total } = progress;
  const earlier = skipped === 0 ? '' : `, ${formatNumber(skipped)} done before`;
  const left = total === null ? 0 : total - doneOf(progress);
  return [
    `${formatNumber(answered)} answered, ${formatNumber(failed)} failed${earlier} in ${formatDuration(ms)}`,
    ...(left > 0 ? [`${formatCount(left, 'prompt')} not asked yet`] : []),
  ];
}
