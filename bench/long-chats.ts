import { join } from 'node:path';
import { KeepAliveClient } from '../test/support/clients/keep-alive.js';
import { Contract } from '../test/support/doors/contract.js';
import { type Service, startService } from '../test/support/service/service.js';
import { alternately } from './support/pairs.js';
import { processorMs } from './support/processor-time.js';
import { dropLog } from './support/service-log.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';

const target = 1.05;
const requestsAtOnce = 30;
const messageCount = 200;
const toolCount = 20;

/** Folder `dist` of an older build; without the variable, this one is compared with itself. */
const beforeDist = process.env.BEFORE_DIST ?? join(__dirname, '..', '..');

/** Compares a long chat completion with the build that BEFORE_DIST names, in alternating pairs. */
export async function longChats(rounds: number): Promise<Row[]> {
  const env = { MODEL_API_DEFAULT_MODEL: 'echo', MODEL_API_LIVE_SESSIONS: '0' };
  const program = join(beforeDist, 'src', 'primary', 'main.js');
  await using before = await startService({ env, program, contract: new AnyContract() });
  await using now = await startService({ env });
  const sides = { bare: await Side.of(before), relay: await Side.of(now) };
  const rows: Row[] = [];
  for (const [what, body, status] of [
    ['answered by the demo model', longChat('echo'), 200],
    ['for a model that does not exist', longChat('nobody'), 404],
  ] as const) {
    const measure = (side: Side) => () => side.measure(body, status);
    await alternately(3, { bare: measure(sides.bare), relay: measure(sides.relay) });
    const pairs = await alternately(rounds * 3, { bare: measure(sides.bare), relay: measure(sides.relay) });
    const name = `POST /v1/chat/completions with ${messageCount} messages and ${toolCount} tools, ${what}`;
    rows.push(
      rowOf(
        `${name}: time`,
        pairs.map(({ relay, bare }) => [relay.ms, bare.ms]),
      ),
    );
    rows.push(
      rowOf(
        `${name}: processor time of the worker`,
        pairs.map(({ relay, bare }) => [relay.workerMs, bare.workerMs]),
      ),
    );
  }
  return rows;
}

/** Accepts the answers of an older build, which has another description of its API. */
class AnyContract extends Contract {
  override check(): void {}
}

function rowOf(question: string, pairs: readonly (readonly [now: number, before: number])[]): Row {
  const ratios = pairs.map(([now, before]) => now / before);
  const [now, before] = [median(pairs.map(([ms]) => ms)), median(pairs.map(([, ms]) => ms))];
  return {
    question: `${question} ÷ the version before, ${pairs.length} pairs`,
    target: `≤ ${target}`,
    measured: `${median(ratios).toFixed(3)} (${spread(ratios, 2)}): ${now.toFixed(2)} ms against ${before.toFixed(2)} ms`,
    holds: median(ratios) <= target,
  };
}

/** Service of one build, with a connection to it. */
class Side {
  readonly #http: KeepAliveClient;
  readonly #workers: readonly number[];

  private constructor(service: Service, workers: readonly number[]) {
    this.#http = new KeepAliveClient(service.port, 1);
    this.#workers = workers;
  }

  static async of(service: Service): Promise<Side> {
    dropLog(service);
    return new Side(service, await service.workers());
  }

  /** Sends the same request some times, and returns what one of them takes. */
  async measure(body: object, status: number): Promise<{ readonly ms: number; readonly workerMs: number }> {
    const [begun, workerMs] = [performance.now(), await processorMs(this.#workers)];
    for (let index = 0; index < requestsAtOnce; index++) {
      const answer = await this.#http.post('/v1/chat/completions', body);
      if (answer.status !== status) throw new Error(`the service answered ${JSON.stringify(answer).slice(0, 300)}`);
    }
    const [ms, worker] = [performance.now() - begun, (await processorMs(this.#workers)) - workerMs];
    return { ms: ms / requestsAtOnce, workerMs: worker / requestsAtOnce };
  }
}

function longChat(model: string): object {
  const parameters = { type: 'object', properties: { city: { type: 'string' }, day: { type: 'integer' } } };
  const tools = Array.from({ length: toolCount }, (_, index) => ({
    type: 'function',
    function: { name: `tool_${index}`, description: `Tool number ${index} of an editor.`, parameters },
  }));
  const messages = Array.from({ length: messageCount / 4 }, (_, round) => {
    const id = `call_${round}`;
    const call = { id, type: 'function', function: { name: 'tool_1', arguments: '{"city":"Ulm","day":3}' } };
    return [
      { role: 'user', content: [{ type: 'text', text: `Question ${round} about the weather of the week.` }] },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: id, content: 'Rain, then wind.' },
      { role: 'assistant', content: `Answer ${round}: it rains, and later there is wind.` },
    ];
  });
  return { model, messages: [...messages.flat(), { role: 'user', content: 'So?' }], tools };
}
