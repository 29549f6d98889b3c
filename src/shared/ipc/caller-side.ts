import type { z } from 'zod';
import { RelayError } from '../errors.js';
import { Inbox } from '../inbox.js';
import type { AnswerOf, Calls, ItemOf, Message, RequestOf, ServerMessage, Singles, Streams } from './message.js';
import { callWindow } from './window.js';

/** Where the words of the serving side go to. */
interface Reply {
  /** An answer or an item, as it came. */
  take(raw: unknown): void;
  finish(): void;
  fail(error: Error): void;
}

/** Owns the calls this end has made and that have not ended. */
export class CallerSide<Out extends Calls> {
  readonly #calls: Out;
  readonly #send: (message: Message) => void;
  readonly #open = new Map<number, Reply>();
  #lastId = 0;
  #closed: Error | undefined;

  constructor(calls: Out, send: (message: Message) => void) {
    this.#calls = calls;
    this.#send = send;
  }

  call<K extends Singles<Out>>(name: K, request: RequestOf<Out, K>): Promise<AnswerOf<Out, K>> {
    const { answer } = this.#calls[name] as Extract<Calls[string], { answer: unknown }>;
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) return reject(this.#closed);
      this.#start(name, request, {
        take: reading(name, answer, (value) => resolve(value as AnswerOf<Out, K>), reject),
        finish: () => reject(new Error(`the call ${name} ended without an answer`)),
        fail: reject,
      });
    });
  }

  async *stream<K extends Streams<Out>>(
    name: K,
    request: RequestOf<Out, K>,
    signal?: AbortSignal,
  ): AsyncGenerator<ItemOf<Out, K>> {
    if (this.#closed !== undefined) throw this.#closed;
    signal?.throwIfAborted();
    const { id, inbox } = this.#startStream(name, request);
    const abort = () => {
      inbox.cut(signal?.reason);
      this.#cancel(id);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      yield* inbox as AsyncIterable<ItemOf<Out, K>>;
    } finally {
      signal?.removeEventListener('abort', abort);
      this.#cancel(id);
    }
  }

  receive(message: ServerMessage): void {
    const { id, kind } = message;
    const reply = this.#open.get(id);
    if (reply === undefined) return; // cancelled here while the message was on its way
    if (kind === 'item') return reply.take(message.item);
    this.#open.delete(id);
    if (kind === 'fail') return reply.fail(errorOf(message.failure));
    if (kind === 'end') return reply.finish();
    reply.take(message.answer);
  }

  close(reason: Error): void {
    this.#closed = reason;
    for (const reply of this.#open.values()) reply.fail(reason);
    this.#open.clear();
  }

  #start(name: string, request: unknown, reply: Reply): number {
    const id = ++this.#lastId;
    this.#open.set(id, reply);
    this.#send({ kind: 'call', id, name, request });
    return id;
  }

  #startStream(name: string, request: unknown) {
    const { item } = this.#calls[name] as Extract<Calls[string], { item: unknown }>;
    let taken = 0;
    const inbox = new Inbox<unknown>(callWindow, () => {
      if (++taken < callWindow / 2 || !this.#open.has(id)) return;
      this.#send({ kind: 'credit', id, count: taken });
      taken = 0;
    });
    const id = this.#start(name, request, {
      take: reading(
        name,
        item,
        (value) => inbox.push(value),
        (error) => inbox.cut(error),
      ),
      finish: () => inbox.finish(),
      fail: (error) => inbox.fail(error),
    });
    return { id, inbox };
  }

  /** Tells the serving side of a stream that this end has left first; one that has ended needs no word. */
  #cancel(id: number): void {
    if (this.#open.delete(id)) this.#send({ kind: 'cancel', id });
  }
}

/** Hands on what fits the schema. */
function reading(name: string, schema: z.ZodType, onFit: (value: unknown) => void, onMisfit: (error: Error) => void) {
  return (raw: unknown) => {
    const parsed = schema.safeParse(raw);
    if (parsed.success) onFit(parsed.data);
    else onMisfit(new Error(`an answer to ${name} fits no schema: ${parsed.error.message}`));
  };
}

function errorOf({ code, message, ...extras }: Extract<ServerMessage, { kind: 'fail' }>['failure']): RelayError {
  return new RelayError(code, message, extras);
}
