import { RelayError } from '../errors.js';
import { Inbox } from '../inbox.js';
import type { Calls, ItemOf, Message, RequestOf, ServerMessage } from './message.js';
import { callWindow } from './window.js';

interface OpenCall {
  readonly name: string;
  readonly inbox: Inbox<unknown>;
}

/** Owns the calls this end has made and that have not ended. */
export class CallerSide<Out extends Calls> {
  readonly #calls: Out;
  readonly #send: (message: Message) => void;
  readonly #open = new Map<number, OpenCall>();
  #lastId = 0;
  #closed: Error | undefined;

  constructor(calls: Out, send: (message: Message) => void) {
    this.#calls = calls;
    this.#send = send;
  }

  async *call<K extends keyof Out & string>(
    name: K,
    request: RequestOf<Out, K>,
    signal?: AbortSignal,
  ): AsyncGenerator<ItemOf<Out, K>> {
    if (this.#closed !== undefined) throw this.#closed;
    signal?.throwIfAborted();
    const id = ++this.#lastId;
    const inbox = this.#openInbox(id, name);
    const abort = () => {
      inbox.cut(signal?.reason);
      this.#cancel(id);
    };
    signal?.addEventListener('abort', abort, { once: true });
    this.#send({ kind: 'call', id, name, request });
    try {
      yield* inbox as AsyncIterable<ItemOf<Out, K>>;
    } finally {
      signal?.removeEventListener('abort', abort);
      this.#cancel(id);
    }
  }

  receive(message: ServerMessage): void {
    const call = this.#open.get(message.id);
    if (call === undefined) return; // cancelled here while the message was on its way
    if (message.kind === 'item') return this.#accept(call, message.item);
    this.#open.delete(message.id);
    if (message.kind === 'end') return call.inbox.finish();
    const { code, message: text, ...extras } = message.failure;
    call.inbox.fail(new RelayError(code, text, extras));
  }

  #accept(call: OpenCall, rawItem: unknown): void {
    const parsed = this.#calls[call.name]?.item.safeParse(rawItem);
    if (parsed?.success) call.inbox.push(parsed.data);
    else call.inbox.cut(new Error(`an item of ${call.name} fits no schema: ${parsed?.error.message}`));
  }

  close(reason: Error): void {
    this.#closed = reason;
    for (const call of this.#open.values()) call.inbox.fail(reason);
    this.#open.clear();
  }

  /** Tells the serving side of a call that this end has left first; one that has ended needs no word. */
  #cancel(id: number): void {
    if (this.#open.delete(id)) this.#send({ kind: 'cancel', id });
  }

  #openInbox(id: number, name: string): Inbox<unknown> {
    let taken = 0;
    const inbox = new Inbox<unknown>(callWindow, () => {
      if (++taken < callWindow / 2 || !this.#open.has(id)) return;
      this.#send({ kind: 'credit', id, count: taken });
      taken = 0;
    });
    this.#open.set(id, { name, inbox });
    return inbox;
  }
}
