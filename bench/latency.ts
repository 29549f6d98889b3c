import { compare } from './support/comparison.js';
import { cat, nodeProgram, type OneShot } from './support/one-shots.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';

const targetMs = 5;

/** Measures the time that the relay adds to an answer if no other client sends requests. */
export async function latency(rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const program of [nodeProgram, cat]) rows.push(await addedFor(program, rounds));
  return rows;
}

async function addedFor(program: OneShot, count: number): Promise<Row> {
  const rounds = await compare(program, { concurrency: 1, forMs: 600 }, count);
  const p50s = rounds.map(({ bare, relay }) => ({ bare: median(bare.latencies), relay: median(relay.latencies) }));
  const added = p50s.map(({ bare, relay }) => relay - bare);
  const relay = median(p50s.map((round) => round.relay));
  const bare = median(p50s.map((round) => round.bare));
  return {
    question: `Added latency at p50, one at a time: ${program.name}`,
    target: `≤ ${targetMs} ms`,
    measured: `${median(added).toFixed(1)} ms (${spread(added, 1)}): ${relay.toFixed(1)} ms over ${bare.toFixed(1)} ms`,
    holds: median(added) <= targetMs,
  };
}
