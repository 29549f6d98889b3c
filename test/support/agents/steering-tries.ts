import { untilEnded } from '../clients/background.js';
import { chat } from '../clients/chat.js';
import { type StreamEvent, stream } from '../clients/event-stream.js';
import type { Service } from '../service/service.js';

interface StoredMessage {
  readonly role: string;
  readonly content: string;
  readonly added_messages?: readonly { readonly at: number; readonly content: string }[];
}

/** Number of tries: `STEERING_TRIES=200` tries more than a normal run. */
export function triesOr(usual: number): number {
  return Number(process.env.STEERING_TRIES ?? usual);
}

/** Numbers of messages by their fate. `failed`: the next turn has failed, because its program was killed. */
type SteeringFates = Record<'turn' | 'next_turn' | 'cut' | 'late' | 'failed', number>;

/** Begins an answer, sends messages at any time, interrupts each third answer, and kills the programs of each fifth. */
export class SteeringTries {
  readonly fates: SteeringFates = { turn: 0, next_turn: 0, cut: 0, late: 0, failed: 0 };
  readonly #service: Service;
  readonly #lastTexts: () => readonly string[];

  /** `lastTexts`: returns the texts that the model has got with its last request. */
  constructor(service: Service, lastTexts: () => readonly string[]) {
    this.#service = service;
    this.#lastTexts = lastTexts;
  }

  async run(tries: number): Promise<SteeringFates> {
    for (let at = 0; at < tries; at++) await this.#try(at);
    return this.fates;
  }

  async #try(at: number): Promise<void> {
    const answer = await stream(this.#service, '/chat', { message: `question-${at}.` });
    const id = String(answer.headers.get('x-conversation-id'));
    const end = endOf(answer.remainingEvents());
    await pause(350);
    const send = (text: string, interrupt: boolean) => this.#service.post(`/chat/${id}/steer`, { text, interrupt });
    const texts = [`steer-${at}.`, ...(at % 4 === 0 ? [`also-${at}.`] : [])];
    const sent = texts.map((text, index) => send(text, index === 0 && at % 3 === 1));
    if (at % 5 === 4) await pause(300).then(() => killPrograms(this.#service));
    const done = await end;
    const isAnswered = done?.event === 'done';
    const counts = new Map<string, number>();
    for (const [index, { status, body }] of (await Promise.all(sent)).entries()) {
      const text = texts[index] ?? '';
      if (status === 200) counts.set(text, await this.#countIn(body, isAnswered));
      else this.fates.late++;
      if (status !== 200 && isAnswered) expect([status, body.error]).toEqual([409, 'turn_ended']);
    }
    await this.#check(id, isAnswered ? done : null, new Map([...counts, [`question-${at}.`, Number(isAnswered)]]));
  }

  /** Resolves with how often the message must be in the conversation. */
  async #countIn(body: Readonly<Record<string, unknown>>, isAnswered: boolean): Promise<number> {
    this.fates[body.reached as 'turn' | 'next_turn']++;
    if (body.interrupted === true) this.fates.cut++;
    if (body.reached === 'turn') return Number(isAnswered);
    const { status } = await untilEnded(this.#service, body.job_id);
    if (status !== 'succeeded') this.fates.failed++;
    return Number(status === 'succeeded');
  }

  async #check(id: string, done: StreamEvent | null, counts: ReadonlyMap<string, number>): Promise<void> {
    const { body } = await this.#service.get(`/chat/${id}/messages`);
    const stored = (body.messages as readonly StoredMessage[] | undefined) ?? [];
    const pieces = stored.flatMap(piecesOf);
    for (const [text, count] of counts)
      expect([text, pieces.filter((each) => each === text).length]).toEqual([text, count]);
    if (done !== null) expect(stored[1]?.content).toBe(done.data.response);
    if (stored.length === 0) return;
    await chat(this.#service, 'check', id);
    expect(linesOf(this.#lastTexts())).toEqual(linesOf([...pieces, 'check']));
  }
}

/** Returns the texts of a message as the model sees them: an answer is cut by the messages that were added to it. */
function piecesOf({ content, added_messages: added = [] }: StoredMessage): string[] {
  if (content === '') return [...added.map((each) => each.content), '(no text)'];
  const starts = [0, ...added.map(({ at }) => at)];
  return starts
    .flatMap((start, index) => [content.slice(start, starts[index + 1]), added[index]?.content ?? ''])
    .filter((text) => text !== '');
}

/** Programs get adjacent messages of the same role as one or as several. */
function linesOf(texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => text.split(/\n+/)).filter((line) => line !== '');
}

function pause(maxMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * maxMs));
}

/** Kills the processes of all jobs, as a machine without memory does. */
async function killPrograms(service: Service): Promise<void> {
  for (const pid of await service.jobProcesses()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {}
  }
}

async function endOf(events: Promise<readonly StreamEvent[]>): Promise<StreamEvent | undefined> {
  return (await events).at(-1);
}
