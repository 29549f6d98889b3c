import { Agent } from 'node:http';
import { installClaude } from '../test/support/claude-cli.js';
import { startWithClaude } from '../test/support/claude-service.js';
import { makeClaudeHome } from '../test/support/claude-session.js';
import { KeepAliveClient } from '../test/support/keep-alive.js';
import { type MessagesApi, startMessagesApi } from '../test/support/messages-api-stub.js';
import type { Service } from '../test/support/service.js';
import { DirectClaude, type DirectRun } from './support/direct-claude.js';
import { alternately } from './support/pairs.js';
import { dropLog } from './support/service-log.js';
import { settled } from './support/settled.js';
import { readStream } from './support/sse-client.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';
import { prompt } from './support/task.js';

const targets = { ask: 0.25, chat: 0.12, stream: 0.25, burst: 1.1 };
const minPairs = 20;
const burst = 8;
const slots = 4;

/** The real claude, with a stub as its API: through the relay, and started by hand for each prompt. */
export async function claude(rounds: number): Promise<Row[]> {
  const program = await installClaude().catch((error: Error) => {
    process.stderr.write(`claude: not measured, because it can not be installed: ${error.message.slice(0, 300)}\n`);
    return null;
  });
  if (program === null) return [];
  await using api = await startMessagesApi();
  await using home = await makeClaudeHome();
  const env = { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'sk-ant-test' };
  const direct = await DirectClaude.find(program, home, env);
  await using bench = await ClaudeBench.start(api, direct);
  return [...(await bench.single(Math.max(rounds, minPairs))), await bench.burst(Math.ceil(rounds / 2))];
}

interface RelayRun {
  readonly askMs: number;
  readonly chatMs: number;
  readonly firstDeltaMs: number;
}

class ClaudeBench implements AsyncDisposable {
  readonly #service: Service;
  readonly #direct: DirectClaude;
  readonly #client: KeepAliveClient;
  readonly #agent = new Agent({ keepAlive: true });

  /** With the settings that a service has by itself. */
  static async start(api: MessagesApi, direct: DirectClaude): Promise<ClaudeBench> {
    const service = await startWithClaude(api, {
      env: { MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '4', MODEL_API_MAX_CONCURRENT: String(slots) },
    });
    dropLog(service);
    return new ClaudeBench(service, direct);
  }

  private constructor(service: Service, direct: DirectClaude) {
    this.#service = service;
    this.#direct = direct;
    this.#client = new KeepAliveClient(service.port, burst);
  }

  /** One at a time, each when all that was started before has come to rest. */
  async single(pairs: number): Promise<Row[]> {
    const id = (await this.#post('/chat', { message: prompt })).conversation_id;
    const bare = () => this.#quietly(() => this.#direct.run());
    const relay = () => this.#throughRelay(id);
    await alternately(2, { bare, relay }); // to warm up
    const rounds = await alternately(pairs, { bare, relay });
    const row = (question: string, target: number, of: (relay: RelayRun) => number, to: (bare: DirectRun) => number) =>
      ratioRow(
        `${question}, ${pairs} pairs`,
        target,
        rounds.map(({ bare, relay }) => [of(relay), to(bare)]),
      );
    return [
      row(
        'POST /ask ÷ `claude -p`',
        targets.ask,
        ({ askMs }) => askMs,
        ({ resultMs }) => resultMs,
      ),
      row(
        'A further turn of POST /chat ÷ `claude -p`',
        targets.chat,
        ({ chatMs }) => chatMs,
        ({ resultMs }) => resultMs,
      ),
      row(
        'First delta of POST /ask ÷ first byte of `claude -p`',
        targets.stream,
        ({ firstDeltaMs }) => firstDeltaMs,
        ({ firstByteMs }) => firstByteMs,
      ),
    ];
  }

  /** All at once, after a job has taken what waited. */
  async burst(pairs: number): Promise<Row> {
    const rounds = await alternately(pairs, {
      bare: () => this.#quietly(() => timed(() => this.#directBurst())),
      relay: () =>
        this.#quietly(async () => {
          await this.#post('/ask', { prompt });
          return timed(() => Promise.all(Array.from({ length: burst }, () => this.#post('/ask', { prompt }))));
        }),
    });
    const question = `A burst of ${burst} at ${slots} slots, standby exhausted ÷ directly ${slots} at a time, ${pairs} pairs`;
    return ratioRow(
      question,
      targets.burst,
      rounds.map(({ bare, relay }) => [relay, bare]),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    this.#agent.destroy();
    await this.#service.stop();
  }

  async #throughRelay(id: unknown): Promise<RelayRun> {
    const askMs = await this.#quietly(() => timed(() => this.#post('/ask', { prompt })));
    const stream = await this.#quietly(() => readStream(this.#agent, this.#service.port, '/ask', { prompt }));
    const chatMs = await this.#quietly(() =>
      timed(() => this.#post('/chat', { message: prompt, conversation_id: id })),
    );
    return { askMs, chatMs, firstDeltaMs: stream.firstDeltaMs };
  }

  async #directBurst(): Promise<void> {
    let left = burst;
    const lane = async () => {
      while (left-- > 0) await this.#direct.run();
    };
    await Promise.all(Array.from({ length: slots }, lane));
  }

  async #quietly<T>(measure: () => Promise<T>): Promise<T> {
    await settled(this.#service, 1);
    return measure();
  }

  async #post(path: string, body: object): Promise<Record<string, unknown>> {
    const answer = await this.#client.post(path, body);
    if (answer.status !== 200) throw new Error(`the relay answered ${JSON.stringify(answer)}`);
    return answer.body;
  }
}

async function timed(action: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await action();
  return performance.now() - begun;
}

function ratioRow(question: string, target: number, pairs: readonly (readonly [relay: number, bare: number])[]): Row {
  const ratios = pairs.map(([relay, bare]) => relay / bare);
  const [relay, bare] = [median(pairs.map(([ms]) => ms)), median(pairs.map(([, ms]) => ms))];
  return {
    question,
    target: `≤ ${target}`,
    measured: `${median(ratios).toFixed(2)} (${spread(ratios, 2)}): ${relay.toFixed(0)} ms against ${bare.toFixed(0)} ms`,
    holds: median(ratios) <= target,
  };
}
