import { textCell } from '../usage/csv.js';
import type { CourseDetail } from './shared.js';

const head = ['course', 'name', 'client', 'jobs', 'failed', 'tokens', 'cost_usd', 'limits', 'has_left'];

/** Returns the usage of the members of a course as CSV, with one line for each. A spreadsheet runs no cell of it. */
export function reportCsv({ course, members }: CourseDetail): string {
  const rows = members.map(
    ({ name, client, jobs, failed, tokens, cost_usd: cost, limits, has_left: hasLeft = false }) => [
      ...[course.name, name, client].map(textCell),
      ...[jobs, failed, tokens, cost.toFixed(6), textCell(limits.join(' ')), hasLeft],
    ],
  );
  return [head, ...rows].map((cells) => `${cells.join(',')}\n`).join('');
}
