import { compare, type Effort } from './support/comparison.js';
import { cat, nodeProgram, type OneShot, script } from './support/one-shots.js';
import { median, spread, sum } from './support/statistics.js';
import type { Row } from './support/table.js';
import { perSecond } from './support/task.js';

const concurrency = 4;
/**
 * Programs with their target ratios. A program that takes a millisecond shows the relay's cost, which is a small part
 * for the others.
 */
const targets: readonly (readonly [OneShot, number])[] = [
  [nodeProgram, 0.9],
  [script, 0.8],
  [cat, 0.6],
];
const standbyRatio = 0.9;

/** Measures the jobs per second of the relay, compared to a bare loop that spawns the same program. */
export async function throughput(rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [program, target] of targets) rows.push(await ratioFor(program, 0, target, rounds));
  return rows;
}

/** Measures the throughput with a standby process for each job, if there is time to start one. */
export async function standby(rounds: number): Promise<Row[]> {
  return [await ratioFor(nodeProgram, 1, standbyRatio, rounds)];
}

async function ratioFor(program: OneShot, waiting: number, target: number, count: number): Promise<Row> {
  const rounds = await compare(program, { concurrency, forMs: 800 }, count, { MODEL_API_STANDBY: String(waiting) });
  const ratios = rounds.map(({ bare, relay }) => perSecond(relay) / perSecond(bare));
  const relay = figures(rounds.map((round) => round.relay));
  const bare = figures(rounds.map((round) => round.bare));
  return {
    question: `Jobs per second ÷ bare spawns, ${concurrency} at once, standby ${waiting}: ${program.name}`,
    target: `≥ ${target}`,
    measured: `${median(ratios).toFixed(2)} (${spread(ratios, 2)}): ${relay} against ${bare}`,
    holds: median(ratios) >= target,
  };
}

/** Formats jobs per second and processor time. The processor time hardly depends on other load of the machine. */
function figures(efforts: readonly Effort[]): string {
  const processor = sum(efforts.map(({ processorMs }) => processorMs)) / sum(efforts.map(({ jobs }) => jobs));
  return `${median(efforts.map(perSecond)).toFixed(0)} jobs/s, ${processor.toFixed(1)} ms of processor time each`;
}
