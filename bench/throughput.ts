import { compare } from './support/comparison.js';
import { cat, nodeProgram, type OneShot, script } from './support/one-shots.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';
import type { Yield } from './support/task.js';

const concurrency = 4;
const targetRatio = 0.8;

/** How many jobs a second the relay answers, held against a bare loop that spawns the same program. */
export async function throughput(rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const program of [nodeProgram, script, cat]) rows.push(await ratioFor(program, rounds));
  return rows;
}

async function ratioFor(program: OneShot, count: number): Promise<Row> {
  const rounds = await compare(program, { concurrency, forMs: 1500 }, count);
  const ratios = rounds.map(({ bare, relay }) => perSecond(relay) / perSecond(bare));
  const relay = median(rounds.map((round) => perSecond(round.relay)));
  const bare = median(rounds.map((round) => perSecond(round.bare)));
  return {
    question: `Jobs per second ÷ bare spawns, ${concurrency} at once: ${program.name}`,
    target: `≥ ${targetRatio}`,
    measured: `${median(ratios).toFixed(2)} (${spread(ratios, 2)}): ${relay.toFixed(1)} of ${bare.toFixed(1)} jobs/s`,
    holds: median(ratios) >= targetRatio,
  };
}

function perSecond({ jobs, elapsedMs }: Yield): number {
  return (jobs * 1000) / elapsedMs;
}
