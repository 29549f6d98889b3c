import {
  messageTexts,
  type ProcessReport,
  readReport,
  startReportingModel,
} from '../../support/agents/reporting-model.js';
import { randomNumbers } from '../../support/basics/random.js';
import { metric } from '../../support/documents/exposition.js';
import { killIfAlive } from '../../support/processes/processes.js';
import { type Service, twoWorkers } from '../../support/service/service.js';

const seed = 20_240_611;
const jobs = 250;
const callers = 8;
const maxPauseMs = 200;
const limitMs = 240_000;

/** A client with a secret. No other client may ever receive its texts, and it may receive no other client's. */
class Caller {
  readonly #name: string;
  readonly #service: Service;
  readonly #random: () => number;
  /** Answered prompts of its conversation. */
  #said: string[] = [];
  #id: string | null = null;
  #count = 0;
  answered = 0;

  constructor(name: string, service: Service, random: () => number) {
    this.#name = name;
    this.#service = service;
    this.#random = random;
  }

  async act(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.#random() * maxPauseMs));
    const choice = this.#random();
    const canary = `canary of ${this.#name} ${++this.#count}`;
    if (choice < 0.35) await this.#ask(canary);
    else if (choice < 0.4) await this.#leave(canary);
    else if (choice < 0.45) await this.#forget();
    else if (choice < 0.48) await this.#kill();
    else await this.#chat(canary);
  }

  async #ask(prompt: string): Promise<void> {
    const { status, body } = await this.#service.post('/ask', { prompt });
    expect({ status, messages: messageTexts(readReport(body.response)) }).toEqual({ status: 200, messages: [prompt] });
    this.answered++;
  }

  async #chat(message: string): Promise<void> {
    const conversation = this.#id === null ? {} : { conversation_id: this.#id };
    const { status, body } = await this.#service.post('/chat', { message, ...conversation });
    if (status === 500) return; // its process was killed during the turn
    expect(status).toBe(200);
    this.#id = body.conversation_id as string;
    this.#said.push(message);
    expect(promptsOf(readReport(body.response))).toEqual(this.#said);
    this.answered++;
  }

  /**
   * Disconnects at a random moment of a turn. The turn may be part of the conversation or not, so the client abandons
   * it.
   */
  async #leave(message: string): Promise<void> {
    const conversation = this.#id === null ? {} : { conversation_id: this.#id };
    const signal = AbortSignal.timeout(Math.round(this.#random() * 60));
    await this.#service.post('/chat', { message, ...conversation }, {}, signal).catch(() => {});
    this.#id = null;
    this.#said = [];
  }

  async #forget(): Promise<void> {
    if (this.#id !== null) await fetch(`${this.#service.url}/chat/${this.#id}`, { method: 'DELETE' });
    this.#id = null;
    this.#said = [];
  }

  async #kill(): Promise<void> {
    const pids = await this.#service.jobProcesses();
    const pid = pids[Math.floor(this.#random() * pids.length)];
    if (pid !== undefined && this.#name === 'caller 0') killIfAlive(pid);
  }
}

/** Returns the users' prompts in order. Each replayed answer contains earlier ones, which count as well. */
function promptsOf({ messages }: ProcessReport): string[] {
  for (const { from, text } of messages) {
    if (from === 'assistant')
      expect(messages.map((message) => message.text)).toEqual(expect.arrayContaining(messageTexts(readReport(text))));
  }
  return messages.filter(({ from }) => from === 'user').map(({ text }) => text);
}

describe('A process of the model CLI', () => {
  it(
    `never receives prompts of two callers, in ${jobs} jobs with standby and live sessions`,
    async () => {
      await using service = await startReportingModel({
        ...twoWorkers,
        MODEL_API_STANDBY: '3',
        MODEL_API_LIVE_SESSIONS: '4',
        MODEL_API_MAX_CONCURRENT: '16', // standby processes are started only while no job waits
      });
      const all = Array.from({ length: callers }, (_, index) => {
        return new Caller(`caller ${index}`, service, randomNumbers(seed + index));
      });
      const act = async (caller: Caller) => {
        while (all.reduce((sum, { answered }) => sum + answered, 0) < jobs) await caller.act();
      };
      await Promise.all(all.map(act));

      // Each of the three ways to a process was used; the first seldom on a busy machine, because standby starts are
      // delayed by other jobs.
      expect(await metric(service, 'standby_total{result="hit"}')).toBeGreaterThan(0);
      expect(await metric(service, 'live_session_total{result="hit"}')).toBeGreaterThan(10);
      expect(await metric(service, 'live_session_total{result="replay"}')).toBeGreaterThan(10);
    },
    limitMs,
  );
});
