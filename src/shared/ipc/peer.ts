import type { z } from 'zod';
import { BoundedQueue } from '../async.js';
import { contained } from '../contained.js';
import { callerDied, cancelled, fromWire, isDefect, toWire } from '../errors.js';
import { type CallMessage, Inbox, Outbox, type PeerMessage } from './packets.js';

/** Carries messages in both directions, in order, until it closes. */
export interface Channel {
  /** `done` is called when the message was written, or with the error that prevented it. */
  send(message: object, done: (error: Error | null) => void): void;
  onMessage(listener: (message: unknown) => void): void;
  /** Called once, when the channel has closed. No message is received afterwards. */
  onClose(listener: () => void): void;
}

/** Call with one answer. */
interface UnaryCall {
  readonly request: z.ZodType;
  readonly answer: z.ZodType;
}

/** Call with any number of items as its answer. */
interface StreamCall {
  readonly request: z.ZodType;
  readonly item: z.ZodType;
}

/** Calls of one direction, by name. */
export type Calls = Readonly<Record<string, UnaryCall | StreamCall>>;
type UnaryNames<C extends Calls> = { [K in keyof C]: C[K] extends UnaryCall ? K : never }[keyof C] & string;
type StreamNames<C extends Calls> = { [K in keyof C]: C[K] extends StreamCall ? K : never }[keyof C] & string;
export type RequestOf<C extends Calls, K extends keyof C> = z.infer<C[K]['request']>;
export type AnswerOf<C extends Calls, K extends keyof C> = C[K] extends UnaryCall ? z.infer<C[K]['answer']> : never;
type ItemOf<C extends Calls, K extends keyof C> = C[K] extends StreamCall ? z.infer<C[K]['item']> : never;

/** Items of a stream, possibly after a delay. */
type Served<T> = AsyncIterable<T> | Promise<AsyncIterable<T>>;

/** Handlers of the calls of one direction. The signal of a stream aborts when its caller cancels or disconnects. */
export type Handlers<C extends Calls> = {
  readonly [K in keyof C]: C[K] extends StreamCall
    ? (request: RequestOf<C, K>, signal: AbortSignal) => Served<ItemOf<C, K>>
    : Record<string, never> extends AnswerOf<C, K>
      ? (request: RequestOf<C, K>) => void // an empty answer need not be returned
      : (request: RequestOf<C, K>) => AnswerOf<C, K> | Promise<AnswerOf<C, K>>;
};

/**
 * Maximum number of unread items of a stream. An item has up to 16 Ki UTF-16 units of text, so a slow reader buffers
 * 128 Ki at most.
 */
export const streamWindow = 8;

/** Owns the credit and the signal of one stream that this end serves. */
class ServedStream {
  readonly #controller = new AbortController();
  #credit = streamWindow;
  #wake: (() => void) | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  addCredit(count: number): void {
    this.#credit += count;
    this.#wake?.();
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
    this.#wake?.();
  }

  /** Waits until one more item may be sent. Resolves with false if the caller has cancelled or disconnected. */
  async takeCredit(): Promise<boolean> {
    while (this.#credit === 0 && !this.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#credit--;
    return !this.signal.aborted;
  }
}

/** Open call made by this end. */
interface OpenCall {
  readonly schema: z.ZodType;
  readonly name: string;
  /** Receives the answer to the call, or one item of a stream. */
  onValue(value: unknown): void;
  finish(): void;
  fail(error: Error): void;
}

type AnyUnary = (request: unknown) => unknown;
type AnyStream = (request: unknown, signal: AbortSignal) => Served<unknown>;

/**
 * One end of a channel: makes the calls of `Out` and serves the calls of `In`. When the channel closes, all open calls
 * reject as cancelled, and all served streams abort.
 */
export class Peer<Out extends Calls, In extends Calls> {
  readonly #out: Out;
  readonly #in: In;
  readonly #handlers: Handlers<In>;
  readonly #onFault: (fault: unknown) => void;
  readonly #made = new Map<number, OpenCall>();
  readonly #served = new Map<number, ServedStream>();
  readonly #outbox: Outbox;
  readonly #inbox = new Inbox();
  readonly #dispatchContained: (message: PeerMessage) => void;
  #lastId = 0;
  #closed: Error | undefined;

  /**
   * `onFault` gets messages that fit no schema, and unexpected errors of handlers. These are defects, never caused by a
   * client.
   */
  constructor(channel: Channel, out: Out, serving: In, handlers: Handlers<In>, onFault: (fault: unknown) => void) {
    this.#out = out;
    this.#in = serving;
    this.#handlers = handlers;
    this.#onFault = onFault;
    const transmit = (packet: object, done: (error: Error | null) => void) => channel.send(packet, done);
    this.#outbox = new Outbox(transmit, (message, cause) => this.#lost(message, cause), onFault);
    this.#dispatchContained = contained((message) => this.#dispatch(message), onFault);
    channel.onMessage(contained((packet) => this.#receive(packet), onFault));
    channel.onClose(contained(() => this.#close(), onFault));
  }

  /** Makes a call with one answer. */
  call<K extends UnaryNames<Out>>(name: K, request: RequestOf<Out, K>): Promise<AnswerOf<Out, K>> {
    const { answer: schema } = this.#out[name] as Extract<Calls[string], { answer: unknown }>;
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) return reject(this.#closed);
      const onValue = (value: unknown) => resolve(value as AnswerOf<Out, K>);
      const finish = () => reject(new Error(`the call ${name} ended without an answer`));
      this.#start(request, { name, schema, onValue, finish, fail: reject });
    });
  }

  /**
   * Makes a call with a stream of items. The call starts at the first `next()`. Leaving the loop early, or aborting the
   * signal, cancels it.
   */
  async *stream<K extends StreamNames<Out>>(
    name: K,
    request: RequestOf<Out, K>,
    signal?: AbortSignal,
  ): AsyncGenerator<ItemOf<Out, K>> {
    if (this.#closed !== undefined) throw this.#closed;
    signal?.throwIfAborted();
    const { id, items } = this.#startStream(name, request);
    const abort = () => {
      items.cut(signal?.reason);
      this.#cancel(id);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      yield* items as AsyncIterable<ItemOf<Out, K>>;
    } finally {
      signal?.removeEventListener('abort', abort);
      this.#cancel(id);
    }
  }

  #start(request: unknown, call: OpenCall): number {
    const id = ++this.#lastId;
    this.#made.set(id, call);
    this.#send({ kind: 'call', id, name: call.name, request });
    return id;
  }

  #startStream(name: string, request: unknown) {
    const { item: schema } = this.#out[name] as Extract<Calls[string], { item: unknown }>;
    let taken = 0;
    const items = new BoundedQueue<unknown>(() => {
      if (++taken < streamWindow / 2 || !this.#made.has(id)) return;
      this.#send({ kind: 'credit', id, count: taken });
      taken = 0;
    });
    const onValue = (value: unknown) => items.push(value);
    const fail = (error: Error) => items.fail(error);
    const id = this.#start(request, { name, schema, onValue, finish: () => items.finish(), fail });
    return { id, items };
  }

  /** Cancels a stream; has no effect if it has ended. */
  #cancel(id: number): void {
    if (this.#made.delete(id)) this.#send({ kind: 'cancel', id });
  }

  #receive(packet: unknown): void {
    for (const message of this.#inbox.read(packet)) this.#dispatchContained(message);
  }

  #dispatch(message: PeerMessage): void {
    switch (message.kind) {
      case 'call':
        return void this.#serve(message);
      case 'credit':
        return this.#served.get(message.id)?.addCredit(message.count);
      case 'cancel':
        return this.#served.get(message.id)?.abort(cancelled('cancelled by the caller'));
      case 'item':
        return this.#passValue(message.id, message.item);
      default:
        return this.#ended(message);
    }
  }

  /** Passes a value to its call. The call may have been cancelled while the message was in transit. */
  #passValue(id: number, value: unknown): void {
    const call = this.#made.get(id);
    if (call === undefined) return;
    const { data, error } = call.schema.safeParse(value);
    if (error === undefined) call.onValue(data);
    else call.fail(new Error(`an answer to ${call.name} fits no schema: ${error.message}`));
  }

  #ended(message: Extract<PeerMessage, { kind: 'answer' | 'end' | 'fail' }>): void {
    if (message.kind === 'answer') this.#passValue(message.id, message.answer);
    const call = this.#made.get(message.id);
    this.#made.delete(message.id);
    if (message.kind === 'fail') call?.fail(fromWire(message.failure));
    if (message.kind === 'end') call?.finish();
  }

  async #serve({ id, name, request }: CallMessage): Promise<void> {
    try {
      const called = Object.hasOwn(this.#in, name) ? this.#in[name] : undefined;
      if (called === undefined) throw new Error(`no call is named ${name}`);
      const parsed = called.request.parse(request);
      if ('item' in called) await this.#serveStream(id, this.#handlers[name] as AnyStream, parsed);
      else this.#send({ kind: 'answer', id, answer: (await (this.#handlers[name] as AnyUnary)(parsed)) ?? {} });
    } catch (error) {
      if (isDefect(error)) this.#onFault(error);
      this.#send({ kind: 'fail', id, failure: toWire(error) });
    }
  }

  async #serveStream(id: number, handler: AnyStream, request: unknown): Promise<void> {
    const stream = new ServedStream();
    this.#served.set(id, stream);
    try {
      for await (const item of await handler(request, stream.signal)) {
        if (!(await stream.takeCredit())) return;
        this.#send({ kind: 'item', id, item });
      }
      if (!stream.signal.aborted) this.#send({ kind: 'end', id });
    } catch (error) {
      if (!stream.signal.aborted || isDefect(error)) throw error; // otherwise no caller waits for the error
    } finally {
      this.#served.delete(id);
    }
  }

  #send(message: PeerMessage): void {
    this.#outbox.send(message);
  }

  /** Fails the call of a message that cannot be sent, at both ends. */
  #lost(message: PeerMessage, cause: unknown): void {
    this.#onFault(cause);
    if (message.kind === 'call') this.#ended({ kind: 'fail', id: message.id, failure: toWire(cause) });
    if (message.kind !== 'answer' && message.kind !== 'item') return;
    this.#served.get(message.id)?.abort(cancelled('an item cannot be sent'));
    this.#send({ kind: 'fail', id: message.id, failure: toWire(cause) });
  }

  #close(): void {
    this.#closed = cancelled('the channel has closed');
    for (const call of this.#made.values()) call.fail(this.#closed);
    this.#made.clear();
    for (const stream of this.#served.values()) stream.abort(cancelled(callerDied));
  }
}
