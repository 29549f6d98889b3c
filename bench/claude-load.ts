import { saysSlowly } from '../test/support/agents/messages-api-stub.js';
import { type ClaudeBench, slots, withClaude } from './support/claude-bench.js';
import { alternately } from './support/pairs.js';
import { ratioRow } from './support/ratio-row.js';
import type { Row } from './support/table.js';
import { prompt } from './support/task.js';

const targets = { burst: 1.1, thinking: 0.72, instant: 1 };
const thinkingMs = 2000;
const crowd = 16;
const burst = 8;

/**
 * Measures the real claude under load, with more prompts than slots: through the relay, and started directly with as
 * many processes at a time.
 */
export async function claudeLoad(rounds: number): Promise<Row[]> {
  const pairs = Math.ceil(rounds / 2);
  return withClaude(async (bench) => {
    const atSlots = `at ${slots} slots ÷ by hand ${slots} at a time, ${pairs} pairs`;
    const instant = ratioRow(
      `${crowd} asks ${atSlots}, an API that answers at once`,
      targets.instant,
      await against(bench, crowd, pairs),
    );
    const exhausted = await against(bench, burst, pairs, () => bench.ask());
    bench.api.behave = () => saysSlowly(thinkingMs, 'Hello, world');
    const thinking = await against(bench, crowd, pairs);
    return [
      ratioRow(`${crowd} asks ${atSlots}, an API that thinks for ${thinkingMs / 1000} s`, targets.thinking, thinking),
      instant,
      ratioRow(`${burst} asks, standby exhausted, ${atSlots}`, targets.burst, exhausted),
    ];
  });
}

async function against(
  bench: ClaudeBench,
  count: number,
  pairs: number,
  before: () => Promise<unknown> = async () => {},
) {
  const rounds = await alternately(pairs, {
    bare: () => bench.quietly(() => bench.timed(() => byHand(bench, count))),
    relay: () =>
      bench.quietly(async () => {
        await before();
        return bench.timed(() => Promise.all(Array.from({ length: count }, () => bench.post('/ask', { prompt }))));
      }),
  });
  return rounds.map(({ bare, relay }) => [relay, bare] as const);
}

async function byHand({ direct }: ClaudeBench, count: number): Promise<void> {
  let left = count;
  const lane = async () => {
    while (left-- > 0) await direct.run();
  };
  await Promise.all(Array.from({ length: slots }, lane));
}
