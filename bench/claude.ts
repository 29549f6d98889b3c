import { withClaude } from './support/claude-bench.js';
import { alternately } from './support/pairs.js';
import { type Pair, ratioRow } from './support/ratio-row.js';
import { readStream } from './support/sse-client.js';
import type { Row } from './support/table.js';
import { prompt } from './support/task.js';

const targets = { ask: 0.25, chat: 0.12, stream: 0.25, byHand: 1.05 };
const minPairs = 20;

/** Measures the real claude with a stub of its API, one request at a time: through the relay, and started directly. */
export async function claude(rounds: number): Promise<Row[]> {
  const pairs = Math.max(rounds, minPairs);
  return [...(await overStarts(pairs)), ...(await overTurns(pairs))];
}

/** Compares with a claude that is started for each prompt. */
function overStarts(pairs: number): Promise<Row[]> {
  return withClaude(async (bench) => {
    const id = (await bench.post('/chat', { message: prompt })).conversation_id;
    const bare = async () => ({
      ...(await bench.quietly(() => bench.direct.run())),
      typedMs: await bench.quietly(() => bench.direct.runAsTyped()),
    });
    const relay = async () => ({
      askMs: await bench.quietly(() => bench.ask()),
      firstDeltaMs: (await bench.quietly(() => readStream(bench.agent, bench.service.port, '/ask', { prompt })))
        .firstDeltaMs,
      chatMs: await bench.quietly(() => bench.chat(id)),
    });
    await alternately(2, { bare, relay }); // to warm up
    const rounds = await alternately(pairs, { bare, relay });
    type Round = (typeof rounds)[number];
    const row = (question: string, target: number | null, of: (round: Round) => Pair) =>
      ratioRow(`${question}, ${pairs} pairs`, target, rounds.map(of));
    return [
      row("POST /ask ÷ `claude -p` with the relay's flags", targets.ask, (round) => [
        round.relay.askMs,
        round.bare.resultMs,
      ]),
      row('POST /ask ÷ `claude -p "…"` as somebody types it', null, (round) => [round.relay.askMs, round.bare.typedMs]),
      row("A further turn of POST /chat ÷ `claude -p` with the relay's flags", targets.chat, (round) => [
        round.relay.chatMs,
        round.bare.resultMs,
      ]),
      row("First delta of POST /ask ÷ first byte of `claude -p` with the relay's flags", targets.stream, (round) => [
        round.relay.firstDeltaMs,
        round.bare.firstByteMs,
      ]),
    ];
  });
}

/** Compares with the same turn, written directly to a waiting claude that was started with the same flags. */
function overTurns(pairs: number): Promise<Row[]> {
  return withClaude(async (bench) => {
    const id = (await bench.post('/chat', { message: prompt })).conversation_id;
    await using talking = await bench.direct.wait();
    await talking.turn();
    const bare = async () => {
      await using fresh = await bench.direct.wait();
      const firstMs = await bench.quietly(() => fresh.turn());
      return { firstMs, furtherMs: await bench.quietly(() => talking.turn()) };
    };
    const relay = async () => ({
      askMs: await bench.quietly(() => bench.ask()),
      chatMs: await bench.quietly(() => bench.chat(id)),
      chatAtRefillMs: await bench.quietly(async () => {
        await bench.untilRefill();
        return bench.chat(id);
      }),
    });
    await alternately(2, { bare, relay });
    const rounds = await alternately(pairs, { bare, relay });
    type Round = (typeof rounds)[number];
    const row = (question: string, of: (round: Round) => Pair) =>
      ratioRow(`${question} ÷ the same turn by hand, ${pairs} pairs`, targets.byHand, rounds.map(of));
    return [
      row('POST /ask', (round) => [round.relay.askMs, round.bare.firstMs]),
      row('A further turn of POST /chat', (round) => [round.relay.chatMs, round.bare.furtherMs]),
      row('The same when a refill has just begun', (round) => [round.relay.chatAtRefillMs, round.bare.furtherMs]),
    ];
  });
}
