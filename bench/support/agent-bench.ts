import { KeepAliveClient } from '../../test/support/clients/keep-alive.js';
import type { Service } from '../../test/support/service/service.js';
import { dropLog } from './service-log.js';
import { settled } from './settled.js';
import { prompt } from './task.js';

/** Model CLI, as a service runs it and as a user starts it directly for one prompt. */
export interface OpenAgent extends AsyncDisposable {
  readonly service: Service;
  /** Starts the CLI for one prompt and waits for its exit. Resolves with the milliseconds until its answer. */
  byHand(): Promise<number>;
  /** Like `byHand`, with the relay's flags, which shorten the start; undefined if the CLI has no such flags. */
  byHandClosed?(): Promise<number>;
}

/** Row of the table of agents. */
export interface BenchedAgent {
  /** Command line for a direct start. */
  readonly name: string;
  readonly targets: { readonly ask: number; readonly chat: number };
  /** Installs and starts the CLI with a stub of its API. Rejects if it cannot be installed. */
  open(): Promise<OpenAgent>;
}

/** Default numbers of standby processes, live sessions and slots of a service. */
export const asByItself = { MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '4', MODEL_API_MAX_CONCURRENT: '4' };

/** Sends prompts to an agent through the relay and directly, one at a time. */
export class AgentBench implements AsyncDisposable {
  readonly #agent: OpenAgent;
  readonly #client: KeepAliveClient;

  constructor(agent: OpenAgent) {
    dropLog(agent.service);
    this.#agent = agent;
    this.#client = new KeepAliveClient(agent.service.port, 4);
  }

  byHand(): Promise<number> {
    return this.#quietly(() => this.#agent.byHand());
  }

  /** Runs the CLI with the relay's flags; null if the relay uses no flags for it. */
  async byHandClosed(): Promise<number | null> {
    const run = this.#agent.byHandClosed;
    return run === undefined ? null : this.#quietly(run);
  }

  ask(): Promise<number> {
    return this.#quietly(() => this.#timed('/ask', { prompt }));
  }

  chat(id: unknown): Promise<number> {
    return this.#quietly(() => this.#timed('/chat', { message: prompt, conversation_id: id }));
  }

  async conversation(): Promise<unknown> {
    return (await this.#post('/chat', { message: prompt })).conversation_id;
  }

  async #timed(path: string, body: object): Promise<number> {
    const begun = performance.now();
    await this.#post(path, body);
    return performance.now() - begun;
  }

  async #post(path: string, body: object): Promise<Record<string, unknown>> {
    const answer = await this.#client.post(path, body);
    if (answer.status !== 200) throw new Error(`the relay answered ${JSON.stringify(answer)}`);
    return answer.body;
  }

  /** Measures after all earlier processes have become idle. */
  async #quietly<T>(measure: () => Promise<T>): Promise<T> {
    await settled(this.#agent.service, 1);
    return measure();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    await this.#agent[Symbol.asyncDispose]();
  }
}
