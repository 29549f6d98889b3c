import { KeepAliveClient } from '../../test/support/keep-alive.js';
import type { Service } from '../../test/support/service.js';
import { dropLog } from './service-log.js';
import { settled } from './settled.js';
import { prompt } from './task.js';

/** A model CLI as a service has it, and as somebody starts it by hand for one prompt. */
export interface OpenAgent extends AsyncDisposable {
  readonly service: Service;
  /** Starts it for one prompt, and resolves when it has exited: milliseconds until its answer was there. */
  byHand(): Promise<number>;
  /** The same with the relay's flags, which have it do less at its start; left out where it takes none. */
  byHandClosed?(): Promise<number>;
}

/** One line of the table of agents. */
export interface BenchedAgent {
  /** How it is started by hand. */
  readonly name: string;
  readonly targets: { readonly ask: number; readonly chat: number };
  /** With a stub as its API. Rejects where it can't be installed. */
  open(): Promise<OpenAgent>;
}

/** Standby and live sessions as a service has them by itself. */
export const asByItself = { MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '4', MODEL_API_MAX_CONCURRENT: '4' };

/** Asks one agent through the relay and by hand, one request at a time. */
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

  /** null where it takes no flags of the relay. */
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

  /** Measures when all that was started before has come to rest. */
  async #quietly<T>(measure: () => Promise<T>): Promise<T> {
    await settled(this.#agent.service, 1);
    return measure();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    await this.#agent[Symbol.asyncDispose]();
  }
}
