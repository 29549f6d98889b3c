import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Fate, fateOf, type JobOrder } from '../../test/support/job-fates.js';
import { randomNumbers } from '../../test/support/random.js';
import type { Service } from '../../test/support/service.js';

const callers = 12;
const maxPauseMs = 600;
const maxLeaveMs = 400;

/** Prompts of `converses.pl`, by how often they are asked. */
const prompts: readonly (readonly [share: number, prompt: string])[] = [
  [0.72, 'hello'],
  [0.84, 'drip 5 30'],
  [0.9, 'big 300000'],
  [0.95, 'die'],
  [0.98, 'hang'],
  [1, 'silent'],
];

/** Owns callers that ask, chat, stream, leave, delete and look, until they are stopped. */
export class MixedTraffic {
  readonly fates: Fate[] = [];
  readonly #service: Service;
  readonly #name: string;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;
  #begun = 0;

  /** `name` begins the request ids. */
  constructor(service: Service, seed: number, name: string) {
    this.#service = service;
    this.#name = name;
    setMaxListeners(0, this.#stop.signal); // each caller pauses by it
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

  /** Returns the conversation that can be gone on with. */
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

  /** As Prometheus does, only more often. */
  async #scrape(): Promise<void> {
    while (await this.#pause(5000)) await this.#look('GET', '/metrics');
  }

  /** A worker that is killed may break it. */
  async #look(method: string, path: string): Promise<void> {
    await fetch(this.#service.url + path, { method })
      .then((response) => response.arrayBuffer())
      .catch(() => {});
  }

  /** Whether to go on after it. */
  #pause(ms: number): Promise<boolean> {
    return sleep(ms, true, { signal: this.#stop.signal }).catch(() => false);
  }
}
