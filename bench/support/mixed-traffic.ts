import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { randomNumbers } from '../../test/support/basics/random.js';
import { type Fate, fateOf, type JobOrder } from '../../test/support/jobs/job-fates.js';
import type { Service } from '../../test/support/service/service.js';

const callers = 12;
const maxPauseMs = 600;
const maxLeaveMs = 400;

/** Prompts of `converses.pl`, with cumulative shares of the requests. */
const prompts: readonly (readonly [share: number, prompt: string])[] = [
  [0.72, 'hello'],
  [0.84, 'drip 5 30'],
  [0.9, 'big 300000'],
  [0.95, 'die'],
  [0.98, 'hang'],
  [1, 'silent'],
];

/** Owns callers that ask, chat, stream, disconnect, delete and read, until they are stopped. */
export class MixedTraffic {
  readonly fates: Fate[] = [];
  readonly #service: Service;
  readonly #name: string;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;
  #begun = 0;

  /** Starts the callers. `name` is the prefix of their request IDs. */
  constructor(service: Service, seed: number, name: string) {
    this.#service = service;
    this.#name = name;
    setMaxListeners(0, this.#stop.signal); // each caller listens during its pauses
    const lanes = Array.from({ length: callers }, (_, index) => this.#call(randomNumbers(seed + index)));
    this.#running = Promise.all([...lanes, this.#scrape()]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #call(random: () => number): Promise<void> {
    let conversation: string | null = null;
    while (await this.#pause(random() * maxPauseMs)) {
      const dice = random();
      if (dice < 0.1) await this.#look('GET', conversation === null ? '/health' : `/chat/${conversation}`);
      else if (dice < 0.15) {
        if (conversation !== null) await this.#look('DELETE', `/chat/${conversation}`);
        conversation = null;
      } else conversation = (await this.#ask(random, conversation)) ?? conversation;
    }
  }

  /** Sends a job. Resolves with the conversation to continue. */
  async #ask(random: () => number, conversation: string | null): Promise<string | undefined> {
    const dice = random();
    const prompt = prompts.find(([share]) => dice < share)?.[1] ?? 'hello';
    const stream = random() < 0.6;
    const leaveAfterMs = stream && random() < 0.2 ? random() * maxLeaveMs : null;
    const id = `${this.#name}-${++this.#begun}`;
    const chat = { message: prompt, stream, ...(conversation !== null && { conversation_id: conversation }) };
    const order: JobOrder =
      random() < 0.4
        ? { id, path: '/chat', body: chat, leaveAfterMs }
        : { id, path: '/ask', body: { prompt, stream }, leaveAfterMs };
    const fate = await fateOf(this.#service.port, order);
    this.fates.push(fate);
    return fate.conversationId;
  }

  /** Scrapes metrics like Prometheus, but more often. */
  async #scrape(): Promise<void> {
    while (await this.#pause(5000)) await this.#look('GET', '/metrics');
  }

  /** Sends a read-only request. Ignores errors, because its worker may be killed. */
  async #look(method: string, path: string): Promise<void> {
    await fetch(this.#service.url + path, { method })
      .then((response) => response.arrayBuffer())
      .catch(() => {});
  }

  /** Pauses. Resolves with whether the caller must continue. */
  #pause(ms: number): Promise<boolean> {
    return sleep(ms, true, { signal: this.#stop.signal }).catch(() => false);
  }
}
