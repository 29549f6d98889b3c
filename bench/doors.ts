import { KeepAliveClient } from '../test/support/clients/keep-alive.js';
import { startService } from '../test/support/service/service.js';
import { type ClaudeBench, withClaude } from './support/claude-bench.js';
import { alternately } from './support/pairs.js';
import { type Pair, ratioRow } from './support/ratio-row.js';
import { dropLog } from './support/service-log.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';
import { prompt } from './support/task.js';

const targets = { newSystem: 0.25, chatCompletions: 1.05, furtherTurn: 0.12, longHistoryMs: 10 };
const minPairs = 20;
const model = 'sonnet';
const historyTurns = 20;
const historyBytes = 1024 * 1024;

interface Said {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

/** Measures requests in the style of an SDK: each contains the client's system text and the whole conversation. */
export async function doors(rounds: number): Promise<Row[]> {
  const pairs = Math.max(rounds, minPairs);
  return [...(await withClaude((bench) => overClaude(bench, pairs))), ...(await longHistory(pairs))];
}

/** Compares alternately with a claude that is started for each prompt, and with POST /ask. */
async function overClaude(bench: ClaudeBench, pairs: number): Promise<Row[]> {
  const client = new StatelessClient((messages) => complete(bench, messages));
  await client.say(prompt);
  let systems = 0;
  const bare = async () => ({
    plainMs: (await bench.quietly(() => bench.direct.run())).resultMs,
    systemMs: (await bench.quietly(() => bench.direct.run(systemText(++systems)))).resultMs,
    askMs: await bench.quietly(() => bench.timed(() => bench.post('/ask', { prompt, model }))),
  });
  const relay = async () => ({
    systemMs: await bench.quietly(() =>
      bench.timed(() => bench.post('/ask', { prompt, system: systemText(++systems) })),
    ),
    completionMs: await bench.quietly(() => bench.timed(() => complete(bench, [{ role: 'user', content: prompt }]))),
    furtherMs: await bench.quietly(() => bench.timed(() => client.say(prompt))),
  });
  await alternately(2, { bare, relay }); // to warm up
  const rounds = await alternately(pairs, { bare, relay });
  type Round = (typeof rounds)[number];
  const row = (question: string, target: number, of: (round: Round) => Pair) =>
    ratioRow(`${question}, ${pairs} pairs`, target, rounds.map(of));
  return [
    row('POST /ask with a system text never seen before ÷ `claude -p` with it', targets.newSystem, (round) => [
      round.relay.systemMs,
      round.bare.systemMs,
    ]),
    row('POST /v1/chat/completions ÷ POST /ask with the same model', targets.chatCompletions, (round) => [
      round.relay.completionMs,
      round.bare.askMs,
    ]),
    row('A further turn of a client that sends the whole conversation ÷ `claude -p`', targets.furtherTurn, (round) => [
      round.relay.furtherMs,
      round.bare.plainMs,
    ]),
  ];
}

function systemText(number: number): string {
  return `You are helper number ${number}. Be brief.`;
}

async function complete(bench: ClaudeBench, messages: readonly Said[]): Promise<string> {
  const body = (await bench.post('/v1/chat/completions', { model, messages })) as unknown as Completion;
  return body.choices[0]?.message.content ?? '';
}

interface Completion {
  readonly choices: readonly { readonly message: { readonly content: string } }[];
}

/** Client that stores its conversation and sends all of it each time. */
class StatelessClient {
  readonly #complete: (messages: readonly Said[]) => Promise<string>;
  readonly said: Said[] = [];

  constructor(complete: (messages: readonly Said[]) => Promise<string>) {
    this.#complete = complete;
  }

  async say(content: string): Promise<void> {
    this.said.push({ role: 'user', content });
    this.said.push({ role: 'assistant', content: await this.#complete(this.said) });
  }
}

/**
 * Compares a turn with a long history to a turn of POST /chat, whose history the service has. A process of the
 * conversation waits for both. Transfer and parsing of a megabyte cost any API time: the refusal of such a body
 * measures it.
 */
async function longHistory(pairs: number): Promise<Row[]> {
  await using service = await startService({ env: { MODEL_API_LIVE_SESSIONS: '4', MODEL_API_DEFAULT_MODEL: 'echo' } });
  dropLog(service);
  using http = new KeepAliveClient(service.port, 2);
  const post = async (path: string, body: object) => {
    const answer = await http.post(path, body);
    if (answer.status !== 200) throw new Error(`the relay answered ${JSON.stringify(answer).slice(0, 300)}`);
    return answer.body;
  };
  const client = new StatelessClient(async (messages) => {
    const body = (await post('/v1/chat/completions', { model: 'echo', messages })) as unknown as Completion;
    return body.choices[0]?.message.content ?? '';
  });
  const long = 'x'.repeat(historyBytes / historyTurns / 2);
  for (let turn = 0; turn < historyTurns; turn++) await client.say(`${turn} ${long}`);
  const { conversation_id } = await post('/chat', { message: prompt });
  const timed = async (action: () => Promise<unknown>) => {
    const begun = performance.now();
    await action();
    return performance.now() - begun;
  };
  const rounds = await alternately(pairs * 5, {
    bare: async () => ({
      turnMs: await timed(() => post('/chat', { message: prompt, conversation_id })),
      readingMs: await timed(() => http.post('/ask', { messages: client.said })),
    }),
    relay: () => timed(() => client.say(prompt)),
  });
  const inAll = rounds.map(({ bare, relay }) => relay - bare.turnMs);
  const own = rounds.map(({ bare, relay }) => relay - bare.turnMs - bare.readingMs);
  const question = 'What a history of 1 MB adds to a turn that goes on in its process';
  const of = `p50 of ${rounds.length} pairs`;
  const measured = (values: readonly number[]) => `${median(values).toFixed(1)} ms (${spread(values, 1)})`;
  return [
    { question: `${question}, in all, ${of}`, target: '–', measured: measured(inAll), holds: null },
    {
      question: `${question}, beside sending and parsing the body, ${of}`,
      target: `≤ ${targets.longHistoryMs} ms`,
      measured: measured(own),
      holds: median(own) <= targets.longHistoryMs,
    },
  ];
}
