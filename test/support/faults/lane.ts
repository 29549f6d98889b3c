import { messageTexts, readReport } from '../agents/reporting-model.js';
import { uploaded } from '../clients/asker.js';
import { createBatch, promptLine } from '../clients/batches.js';
import { type Fate, fateOf } from '../jobs/job-fates.js';
import type { Answer, Service } from '../service/service.js';

/** Orders to the fixture `converses.pl`, by share. The others are answered with a report of all that the process has received. */
const orders: readonly (readonly [share: number, order: string])[] = [
  [0.04, 'die'],
  [0.08, 'exit 127'],
  [0.1, 'stray'],
  [0.12, 'hang'],
  [0.14, 'stubborn'],
  [0.15, 'big 1100000'],
  [0.22, 'drip 10 10'],
];

/** Rounds of tools without which a run proves little. */
const minRounds = 5;

/** What clients know from answers, of the service and of its predecessors with the same state. */
export class Known {
  readonly fates: Fate[] = [];
  readonly keys = new Map<string, string>();
  readonly removedKeys = new Set<string>();
  /** Stored files with their content. */
  readonly files = new Map<string, string>();
  readonly backgroundJobs = new Set<string>();
  readonly batches = new Map<string, readonly string[]>();
  readonly callIds: string[] = [];
  /** Number of keys that were made. */
  madeKeys = 0;
  /** Answered rounds of tools, and of these the later ones of a conversation. */
  readonly rounds = { all: 0, later: 0 };
  /** Contradictions between answers, as sentences. */
  readonly faults: string[] = [];

  /** Whether the service has answered operations of each kind, so that an expectation of them is not empty. */
  get hasEachKind(): boolean {
    const { rounds, removedKeys, files, backgroundJobs, batches } = this;
    const stored = [this.keys, removedKeys, files, backgroundJobs, batches];
    return rounds.all >= minRounds && rounds.later > 0 && stored.every(({ size }) => size > 0);
  }

  /** The memory of a service ends with its primary; the state folder keeps keys. */
  forgetMemory(): void {
    for (const each of [this.files, this.backgroundJobs, this.batches]) each.clear();
    this.fates.length = 0;
    this.rounds.all = 0;
    this.rounds.later = 0;
  }
}

/** Client that sends one operation after the other, and checks what each answer must contain. */
export class Lane {
  readonly #name: string;
  readonly #service: Service;
  readonly #headers: Record<string, string>;
  readonly #known: Known;
  readonly #random: () => number;
  #count = 0;
  #conversation: string | null = null;
  /** Prompts of the conversation whose turns are complete. */
  #said: string[] = [];
  /** Prompts of turns without an answer: each may be part of the conversation or not. */
  #perhaps: string[] = [];

  constructor(name: string, service: Service, headers: Record<string, string>, known: Known, random: () => number) {
    this.#name = name;
    this.#service = service;
    this.#headers = headers;
    this.#known = known;
    this.#random = random;
  }

  /** Sends one random operation. Never rejects because of a lost connection. */
  async act(): Promise<void> {
    const dice = this.#random();
    if (dice < 0.4) await this.#ask();
    else if (dice < 0.7) await this.#chat();
    else if (dice < 0.73) await this.#forget();
    else if (dice < 0.86) await this.#callTools();
    else if (dice < 0.89) await this.#askInBackground();
    else if (dice < 0.9) await this.#send('POST', '/health/recheck', {});
    else if (dice < 0.92) await this.#upload();
    else if (dice < 0.945) await this.#startBatch();
    else if (dice < 0.985) await this.makeKey();
    else await this.#removeKey();
  }

  #next(): string {
    return `${this.#name}-${++this.#count}`;
  }

  /** Resolves with null if the connection is lost, or if the client leaves. */
  async #send(
    method: 'POST' | 'DELETE',
    path: string,
    body: object = {},
    leaves?: AbortSignal,
  ): Promise<Answer | null> {
    const headers = { ...this.#headers, 'x-request-id': `other-${this.#next()}` }; // only jobs with a fate are in the ledger
    const sent =
      method === 'POST' ? this.#service.post(path, body, headers, leaves) : this.#service.delete(path, headers);
    return sent.catch((error: Error) => {
      if (['TypeError', 'AbortError', 'TimeoutError', 'SyntaxError'].includes(error.name)) return null;
      throw error;
    });
  }

  /** Sends a job, streamed or not, which some clients leave. */
  async #sendJob(path: '/ask' | '/chat', id: string, fields: object, leaves: number): Promise<Fate> {
    const stream = this.#random() < 0.6;
    const leaveAfterMs = stream && this.#random() < leaves ? this.#random() * 200 : null;
    const order = { id, path, body: { ...fields, stream }, leaveAfterMs, headers: this.#headers };
    const fate = await fateOf(this.#service.port, order);
    this.#known.fates.push(fate);
    return fate;
  }

  #fault(sentence: string): void {
    this.#known.faults.push(`${this.#name}: ${sentence}`);
  }

  async #ask(): Promise<void> {
    const id = this.#next();
    const dice = this.#random();
    const order = orders.find(([share]) => dice < share)?.[1] ?? `canary of ${id}`;
    const { kind, outcome, response = '' } = await this.#sendJob('/ask', id, { prompt: order }, 0.2);
    if (kind !== 'answered' || outcome !== 'ok' || !order.startsWith('canary')) return;
    const texts = messageTexts(readReport(response));
    if (texts.length !== 1 || texts[0] !== order) this.#fault(`asked ${order}, and the process received ${texts}`);
  }

  async #chat(): Promise<void> {
    const id = this.#next();
    const isFailing = this.#random() < 0.06;
    const message = `${isFailing ? 'die' : 'canary'} of ${id}`;
    const conversation = this.#conversation === null ? {} : { conversation_id: this.#conversation };
    const fate = await this.#sendJob('/chat', id, { message, ...conversation }, 0.1);
    if (fate.kind === 'refused') {
      if (fate.status === 400 || fate.status === 404) this.#fault(`its conversation is gone: ${fate.status}`);
    } else if (fate.outcome === 'ok') this.#continue(fate, message);
    else if (fate.kind === 'left' || fate.kind === 'lost') this.#perhaps.push(message);
  }

  /** Expects the complete turns in their order, and of the others none twice. */
  #continue({ conversationId, response = '' }: Fate, message: string): void {
    const { messages } = readReport(response);
    const prompts = messages.flatMap(({ from, text }) => (from === 'user' ? [text] : []));
    const replayed = messages.flatMap(({ from, text }) => (from === 'user' ? [] : messageTexts(readReport(text))));
    const own = new Set(messages.map(({ text }) => text));
    if (replayed.some((text) => !own.has(text))) this.#fault(`the process received answers to others: ${replayed}`);
    const certain = prompts.filter((prompt) => !this.#perhaps.includes(prompt));
    if (certain.join('\n') !== [...this.#said, message].join('\n') || new Set(prompts).size !== prompts.length)
      this.#fault(`said ${[...this.#said, message]}, and the process received ${prompts}`);
    this.#conversation = conversationId ?? null;
    this.#said = prompts;
    this.#perhaps = [];
  }

  async #forget(): Promise<void> {
    if (this.#conversation !== null) await this.#send('DELETE', `/chat/${this.#conversation}`);
    this.#conversation = null;
    this.#said = [];
    this.#perhaps = [];
  }

  /** Two rounds of calls in one conversation: two calls at once, then one. */
  async #callTools(): Promise<void> {
    const leaves = this.#random() < 0.1 ? AbortSignal.timeout(Math.round(5 + this.#random() * 50)) : undefined;
    const first = await this.#callRound([], 2, leaves);
    if (first === null) return;
    this.#known.rounds.all++;
    if ((await this.#callRound(first, 1, leaves)) === null) return;
    this.#known.rounds.all++;
    this.#known.rounds.later++;
  }

  /**
   * Expects the client's own calls, and an answer that repeats their results. Resolves with all messages; null if the
   * round has no end.
   */
  async #callRound(earlier: readonly unknown[], calls: number, leaves?: AbortSignal): Promise<unknown[] | null> {
    const who = this.#next();
    const inputs = Array<string>(calls).fill(JSON.stringify({ who }));
    const asked = [...earlier, { role: 'user', content: `call ${inputs.join(' ')}` }];
    const message = await this.#complete(asked, leaves);
    if (message === undefined) return null;
    const made = message.tool_calls ?? [];
    this.#known.callIds.push(...made.map(({ id }) => id));
    const called = made.map(({ function: { arguments: input } }) => input);
    if (called.join(' ') !== inputs.join(' ')) this.#fault(`wanted the calls ${inputs}, and got ${called}`);
    const results = made.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: `result ${id} of ${who}` }));
    const answer = await this.#complete([...asked, message, ...results]);
    if (answer === undefined) return null;
    const expected = `The results are: ${results.map(({ content }) => content).join(' ')}`;
    if (answer.content !== expected) this.#fault(`wanted the text ${expected}, and got ${answer.content}`);
    return [...asked, message, ...results, answer];
  }

  async #complete(messages: readonly unknown[], leaves?: AbortSignal): Promise<ToolMessage | undefined> {
    const tools = [{ type: 'function', function: { name: 'note', parameters: { type: 'object' } } }];
    const body = { model: 'default', tools, messages };
    const answer = await this.#send('POST', '/v1/chat/completions', body, leaves);
    if (answer !== null && ![200, 429, 500, 502, 503, 504].includes(answer.status))
      this.#fault(`a round of tools ended with ${answer.status} ${answer.text}`);
    if (answer?.status !== 200) return undefined;
    return (answer.body.choices as readonly { readonly message: ToolMessage }[])[0]?.message;
  }

  async #askInBackground(): Promise<void> {
    const headers = { ...this.#headers, prefer: 'respond-async' };
    const answer = await this.#service.post('/ask', { prompt: 'drip 5 10' }, headers).catch(() => null);
    if (answer?.status === 202) this.#known.backgroundJobs.add(String(answer.body.job_id));
  }

  async #upload(): Promise<void> {
    const text = `content of ${this.#next()} `.repeat(500);
    const asker = { url: this.#service.url, headers: this.#headers };
    const id = await uploaded(asker, Buffer.from(text)).catch(() => null);
    if (id !== null) this.#known.files.set(id, text);
  }

  async #startBatch(): Promise<void> {
    const ids = [0, 1, 2].map(() => this.#next());
    const lines = ids.map((id, index) => promptLine(id, index === 1 ? 'die' : `canary of ${id}`)).join('\n');
    const asker = { url: this.#service.url, headers: this.#headers };
    const file = await uploaded(asker, Buffer.from(lines), 'batch').catch(() => null);
    if (file === null) return;
    const made = await createBatch(this.#service, file, {}, this.#headers).catch(() => null);
    if (made?.status === 200) this.#known.batches.set(String(made.body.id), ids);
  }

  async makeKey(): Promise<void> {
    const name = `k${this.#next()}`;
    const made = await this.#send('POST', '/keys', { name });
    if (made?.status !== 201) return;
    this.#known.madeKeys++;
    this.#known.keys.set(name, String(made.body.key));
  }

  async #removeKey(): Promise<void> {
    const [oldest] = this.#known.keys;
    if (oldest === undefined) return;
    const [name, key] = oldest;
    this.#known.keys.delete(name); // it may be removed without an answer
    const removed = await this.#send('DELETE', `/keys/${name}`);
    if (removed !== null && removed.status < 300) this.#known.removedKeys.add(key);
  }
}

interface ToolMessage {
  readonly content: string;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly arguments: string } }[];
}
