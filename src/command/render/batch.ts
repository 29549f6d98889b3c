import { formatCount, formatDuration, formatNumber } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';

/** How far one run has come. */
export interface Tally {
  readonly answered: number;
  readonly failed: number;
  /** Asked again, because their run was lost with its host. */
  readonly rerun: number;
  readonly heldBecause: string | null;
}

/** How far a batch has come, earlier runs included. */
export interface BatchProgress extends Tally {
  /** Of all lines with a prompt; null: nobody knows before stdin ends. */
  readonly total: number | null;
  /** Lines that were done before this run. */
  readonly skipped: number;
  /** Prompts that ended in a second; null before the first ones. */
  readonly rate: number | null;
}

const barColumns = 20;

/** One line, such as `████░░░░  1,234 of 10,000 · 4.1/s · 3 failed · 35 min left`. */
export function progressLine(progress: BatchProgress, paint: Paint): string {
  const { total, failed, rerun, rate, heldBecause } = progress;
  const done = doneOf(progress);
  const left = total !== null && rate !== null && rate > 0 ? ((total - done) / rate) * 1000 : null;
  const parts = [
    total === null ? `${formatNumber(done)} done` : `${formatNumber(done)} of ${formatNumber(total)}`,
    ...(rate === null ? [] : [`${formatNumber(rate)}/s`]),
    ...(failed === 0 ? [] : [paint.red(`${formatNumber(failed)} failed`)]),
    ...(rerun === 0 ? [] : [`${formatNumber(rerun)} asked again`]),
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

function doneOf({ skipped, answered, failed }: BatchProgress): number {
  return skipped + answered + failed;
}

/** What a run begins with, and what its output holds already. */
export function startLine(
  job: { readonly total: number | null; readonly concurrency: number; readonly retriesFailed: boolean },
  { answered, failed }: Pick<Tally, 'answered' | 'failed'>,
): string {
  const known = job.total === null ? '' : `${formatCount(job.total, 'prompt')}, `;
  const there = answered + failed === 0 ? '' : ` ${formatCount(answered, 'answer')} there already`;
  const again = job.retriesFailed ? 'asked again' : 'not asked again';
  return `${known}${formatNumber(job.concurrency)} at once.${there}${failed === 0 ? '' : `, ${formatCount(failed, 'failure')} ${again}`}`;
}

/** What a run has come to. */
export function summaryLines(progress: BatchProgress, ms: number): string[] {
  const { answered, failed, skipped, rerun, total } = progress;
  const earlier = skipped === 0 ? '' : `, ${formatNumber(skipped)} done before`;
  const left = total === null ? 0 : total - doneOf(progress);
  return [
    `${formatNumber(answered)} answered, ${formatNumber(failed)} failed${earlier} in ${formatDuration(ms)}`,
    ...(rerun === 0 ? [] : [`${formatCount(rerun, 'prompt')} asked again after their run was lost with the service`]),
    ...(left > 0 ? [`${formatCount(left, 'prompt')} not asked yet`] : []),
  ];
}
