import { Agent } from 'node:http';
import { installClaude, startWithClaude } from '../../test/support/agents/claude-service.js';
import { makeClaudeHome } from '../../test/support/agents/claude-session.js';
import { type MessagesApi, startMessagesApi } from '../../test/support/agents/messages-api-stub.js';
import { until } from '../../test/support/basics/until.js';
import { KeepAliveClient } from '../../test/support/clients/keep-alive.js';
import type { Service } from '../../test/support/service/service.js';
import { DirectClaude } from './direct-claude.js';
import { dropLog } from './service-log.js';
import { settled } from './settled.js';
import type { Row } from './table.js';
import { prompt } from './task.js';

export const slots = 4;
const maxConnections = 32;

/**
 * Runs a measurement of the real claude with a stub of its API, through the relay and started directly. Returns no rows
 * if claude cannot be installed.
 */
export async function withClaude(measure: (bench: ClaudeBench) => Promise<Row[]>): Promise<Row[]> {
  const program = await installClaude().catch((error: Error) => {
    process.stderr.write(`claude: not measured, because it can not be installed: ${error.message.slice(0, 300)}\n`);
    return null;
  });
  if (program === null) return [];
  await using api = await startMessagesApi();
  await using home = await makeClaudeHome();
  const env = { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'sk-ant-test' };
  const direct = await DirectClaude.find(program, home, env);
  // Standby and live sessions have the defaults of a service.
  const service = await startWithClaude(api, {
    env: { MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '4', MODEL_API_MAX_CONCURRENT: String(slots) },
  });
  dropLog(service);
  await using bench = new ClaudeBench(api, service, direct);
  return await measure(bench);
}

export class ClaudeBench implements AsyncDisposable {
  readonly api: MessagesApi;
  readonly service: Service;
  readonly direct: DirectClaude;
  readonly agent = new Agent({ keepAlive: true });
  readonly #client: KeepAliveClient;

  constructor(api: MessagesApi, service: Service, direct: DirectClaude) {
    this.api = api;
    this.service = service;
    this.direct = direct;
    this.#client = new KeepAliveClient(service.port, maxConnections);
  }

  /** Measures after all earlier processes have become idle. */
  async quietly<T>(measure: () => Promise<T>): Promise<T> {
    await settled(this.service, 1);
    return measure();
  }

  /** Sends a prompt, and resolves when the process that replaces the used standby process has just started. */
  async untilRefill(): Promise<void> {
    const before = new Set(await this.service.jobProcesses());
    await this.ask();
    await until(
      async () => (await this.service.jobProcesses()).some((pid) => !before.has(pid)),
      'a process to be started in advance',
    );
  }

  ask(): Promise<number> {
    return this.timed(() => this.post('/ask', { prompt }));
  }

  chat(id: unknown): Promise<number> {
    return this.timed(() => this.post('/chat', { message: prompt, conversation_id: id }));
  }

  async timed(action: () => Promise<unknown>): Promise<number> {
    const begun = performance.now();
    await action();
    return performance.now() - begun;
  }

  async post(path: string, body: object): Promise<Record<string, unknown>> {
    const answer = await this.#client.post(path, body);
    if (answer.status !== 200) throw new Error(`the relay answered ${JSON.stringify(answer)}`);
    return answer.body;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    this.agent.destroy();
    await this.service.stop();
  }
}
