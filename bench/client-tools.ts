import { type MessagesRequest, says, saysAndCalls } from '../test/support/agents/messages-api-stub.js';
import { KeepAliveClient } from '../test/support/clients/keep-alive.js';
import { note, ToolClient } from '../test/support/clients/tool-client.js';
import { type ClaudeBench, withClaude } from './support/claude-bench.js';
import { alternately } from './support/pairs.js';
import { ratioRow } from './support/ratio-row.js';
import { firstTextOf } from './support/sse-client.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';
import { prompt } from './support/task.js';

const targets = { heldMs: 60, fresh: 1.25, loop: 1.4 };
const minPairs = 20;
const loopRounds = 10;
const clients = 100;
/** Value of MODEL_API_LIVE_SESSIONS in this bench. */
const liveSessions = 4;
const model = 'sonnet';
const result = 'a note';

/**
 * Measures the cost of client tools with the real claude. The stub of its API calls the tool `note` as often as the
 * test sets.
 */
export function clientTools(rounds: number): Promise<Row[]> {
  const pairs = Math.max(rounds, minPairs);
  return withClaude(async (bench) => [
    ...(await firstDeltas(bench, pairs)),
    await tenRounds(bench, pairs),
    await manyWaiting(bench),
  ]);
}

/** Makes the stub's model call the tool until it has received `calls` results. */
function callsBefore(bench: ClaudeBench, calls: number): void {
  bench.api.behave = (request) =>
    resultsIn(request) < calls
      ? saysAndCalls('', { name: 'note', input: { who: 'Ada' } })
      : says('All', ' is', ' done');
}

function resultsIn({ body }: MessagesRequest): number {
  return JSON.stringify(body.messages).split('"type":"tool_result"').length - 1;
}

async function firstDeltas(bench: ClaudeBench, pairs: number): Promise<Row[]> {
  const user = { role: 'user', content: prompt };
  const firstText = (body: object) =>
    bench.quietly(() => firstTextOf(bench.agent, bench.service.port, { model, messages: [user], ...body }));
  const withSystem = { messages: [{ role: 'system', content: 'You are a helper. Be brief.' }, user] };
  const bare = async () => {
    callsBefore(bench, 0);
    return { plainMs: await firstText({}), systemMs: await firstText(withSystem) };
  };
  const relay = async () => {
    callsBefore(bench, 0);
    const plainMs = await firstText({ tools: [note] });
    const systemMs = await firstText({ tools: [note], ...withSystem });
    callsBefore(bench, 1);
    const client = new ToolClient(bench.service, 'any', { model });
    const { calls } = await client.say(prompt);
    const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: result }));
    return {
      plainMs,
      systemMs,
      heldMs: await firstText({ tools: [note], messages: [...client.messages, ...results] }),
    };
  };
  await alternately(2, { bare, relay }); // to warm up
  const rounds = await alternately(pairs, { bare, relay });
  const held = rounds.map(({ relay: { heldMs } }) => heldMs);
  return [
    {
      question: `First delta after the results of client tools, in the process that waits for them, p50 of ${pairs}`,
      target: `≤ ${targets.heldMs} ms`,
      measured: `${median(held).toFixed(0)} ms (${spread(held, 0)})`,
      holds: median(held) <= targets.heldMs,
    },
    ratioRow(
      `First delta of a first request with a tool and a system text ÷ the same without the tool, ${pairs} pairs`,
      targets.fresh,
      rounds.map((round) => [round.relay.systemMs, round.bare.systemMs]),
    ),
    ratioRow(
      `The same without a system text, ${pairs} pairs`,
      targets.fresh,
      rounds.map((round) => [round.relay.plainMs, round.bare.plainMs]),
    ),
  ];
}

/**
 * Measures a loop of ten tool calls, including the client's part, compared to the same loop on the CLI's native
 * protocol.
 */
async function tenRounds(bench: ClaudeBench, pairs: number): Promise<Row> {
  callsBefore(bench, loopRounds);
  using http = new KeepAliveClient(bench.service.port, 1);
  const tool = { name: 'note', description: '', schema: JSON.stringify(note.function.parameters) };
  const bare = async () => {
    await using waiting = await bench.direct.wait([tool]);
    return await bench.quietly(() => waiting.loop(result));
  };
  const relay = () =>
    bench.quietly(() =>
      bench.timed(async () => {
        const messages: object[] = [{ role: 'user', content: prompt }];
        for (let round = 0; round <= loopRounds; round++) messages.push(...(await answered(http, messages)));
      }),
    );
  await alternately(2, { bare, relay });
  const rounds = await alternately(pairs, { bare, relay });
  return ratioRow(
    `A loop of ${loopRounds} calls ÷ the same on the CLI's own protocol, ${pairs} pairs`,
    targets.loop,
    rounds.map((round) => [round.relay, round.bare]),
  );
}

interface Completion {
  readonly choices: readonly { readonly message: { readonly tool_calls?: readonly { readonly id: string }[] } }[];
}

/** Returns the model's message, and the results that the client sends next. */
async function answered(http: KeepAliveClient, messages: readonly object[]): Promise<object[]> {
  const { status, body } = await http.post('/v1/chat/completions', { model, tools: [note], messages });
  const message = (body as unknown as Completion).choices?.[0]?.message;
  if (status !== 200 || message === undefined) throw new Error(`the relay answered ${JSON.stringify(body)}`);
  const results = (message.tool_calls ?? []).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: result }));
  return [message, ...results];
}

/** Measures many waiting clients: all have an open call before the first one sends its result. */
async function manyWaiting(bench: ClaudeBench): Promise<Row> {
  callsBefore(bench, 1);
  const asking = Array.from({ length: clients }, () => new ToolClient(bench.service, 'any', { model }));
  const first = await Promise.all(asking.map((client, at) => client.say(`I am number ${at}.`)));
  const second = await Promise.all(asking.map((client, at) => client.answer(() => `result ${at}`)));
  const right = second.filter(({ text }, at) => text === 'All is done' && first[at]?.calls.length === 1);
  const sent = bench.api.requests.slice(-clients).map(({ body }) => JSON.stringify(body.messages));
  const matching = sent.filter((text) => {
    const at = /I am number (\d+)\./.exec(text)?.[1];
    return text.includes(`"result ${at}"`);
  });
  const live = second.filter(({ session }) => session === 'live').length;
  const replayed = second.filter(({ session }) => session === 'replay').length;
  const wrong = clients - Math.min(right.length, matching.length);
  return {
    question: `${clients} clients with an open call, ${liveSessions} live sessions allowed`,
    target: `${liveSessions} live, ${clients - liveSessions} replayed, 0 wrong`,
    measured: `${live} live, ${replayed} replayed, ${wrong} wrong`,
    holds: live <= liveSessions && live + replayed === clients && wrong === 0,
  };
}
