import { AgentBench, type BenchedAgent } from './support/agent-bench.js';
import { codexByHand } from './support/codex-by-hand.js';
import { alternately } from './support/pairs.js';
import { ratioRow } from './support/ratio-row.js';
import type { Row } from './support/table.js';

const minPairs = 15;

const agents: readonly BenchedAgent[] = [codexByHand];

/**
 * Compares other real model CLIs, each with a stub of its API, through the relay and started directly, one request at a
 * time.
 */
export async function agentsByHand(rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const agent of agents) rows.push(...(await measured(agent, Math.max(rounds, minPairs))));
  return rows;
}

/** Measures one agent. Returns no rows if it cannot be installed. */
async function measured(agent: BenchedAgent, pairs: number): Promise<Row[]> {
  const { name, targets } = agent;
  const open = await agent.open().catch((error: Error) => {
    process.stderr.write(`${name}: not measured: ${error.message.slice(0, 300)}\n`);
    return null;
  });
  if (open === null) return [];
  await using bench = new AgentBench(open);
  const id = await bench.conversation();
  const bare = async () => ({ typedMs: await bench.byHand(), closedMs: await bench.byHandClosed() });
  const relay = async () => ({ askMs: await bench.ask(), chatMs: await bench.chat(id) });
  await alternately(2, { bare, relay }); // to warm up
  const rounds = await alternately(pairs, { bare, relay });
  const rows = (by: string, { ask, chat }: Targets, pairOf: (round: (typeof rounds)[number]) => number) => [
    ratioRow(
      `POST /ask ÷ ${by}`,
      ask,
      rounds.map((round) => [round.relay.askMs, pairOf(round)]),
    ),
    ratioRow(
      `A further turn of POST /chat ÷ ${by}`,
      chat,
      rounds.map((round) => [round.relay.chatMs, pairOf(round)]),
    ),
  ];
  const typed = rows(`${name}, ${pairs} pairs`, targets, ({ bare }) => bare.typedMs);
  if (open.byHandClosed === undefined) return typed;
  const noTargets = { ask: null, chat: null };
  return [
    ...typed,
    ...rows(`${name} with the relay's flags, ${pairs} pairs`, noTargets, ({ bare }) => bare.closedMs ?? Number.NaN),
  ];
}

interface Targets {
  readonly ask: number | null;
  readonly chat: number | null;
}
