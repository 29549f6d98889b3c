import { Cancelled } from '../errors.js';
import { CallerSide } from './caller-side.js';
import type { Channel } from './channel.js';
import {
  type AnswerOf,
  type CallerMessage,
  type Calls,
  type Handlers,
  type ItemOf,
  type Message,
  messageSchema,
  type RequestOf,
  type Singles,
  type Streams,
} from './message.js';
import { ServingSide } from './serving-side.js';

/**
 * One end of a channel, for both directions: makes the calls of `Out`, serves those of `In`.
 * When the channel closes, every call made is rejected and every call being served is aborted.
 */
export class Peer<Out extends Calls, In extends Calls> {
  readonly #channel: Channel;
  readonly #caller: CallerSide<Out>;
  readonly #server: ServingSide<In>;
  readonly #onFault: (fault: unknown) => void;

  /** `onFault` hears of messages that fit no schema and of handlers that broke: defects, never a client's doing. */
  constructor(channel: Channel, out: Out, serving: In, handlers: Handlers<In>, onFault: (fault: unknown) => void) {
    const send = (message: Message) => this.#send(message);
    this.#channel = channel;
    this.#caller = new CallerSide(out, send);
    this.#server = new ServingSide(serving, handlers, send, onFault);
    this.#onFault = onFault;
    channel.onMessage((message) => this.#receive(message));
    channel.onClose(() => this.#close());
  }

  /** A call that is answered once. */
  call<K extends Singles<Out>>(name: K, request: RequestOf<Out, K>): Promise<AnswerOf<Out, K>> {
    return this.#caller.call(name, request);
  }

  /** Starts at the first `next()`; leaving the loop early, or the signal, cancels it. */
  stream<K extends Streams<Out>>(
    name: K,
    request: RequestOf<Out, K>,
    signal?: AbortSignal,
  ): AsyncGenerator<ItemOf<Out, K>> {
    return this.#caller.stream(name, request, signal);
  }

  #receive(raw: unknown): void {
    const parsed = messageSchema.safeParse(raw);
    if (!parsed.success) return this.#onFault(new Error(`a message fits no schema: ${parsed.error.message}`));
    if (isFromCaller(parsed.data)) this.#server.receive(parsed.data);
    else this.#caller.receive(parsed.data);
  }

  #send(message: Message): void {
    // A send that fails is a channel that closes: `onClose` ends the calls.
    this.#channel.send(message, () => {});
  }

  #close(): void {
    this.#caller.close(new Cancelled('the channel has closed'));
    this.#server.close(new Cancelled('the caller has gone'));
  }
}

function isFromCaller(message: Message): message is CallerMessage {
  return message.kind === 'call' || message.kind === 'cancel' || message.kind === 'credit';
}
