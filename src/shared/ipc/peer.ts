import { Cancelled } from '../errors.js';
import { CallerSide } from './caller-side.js';
import type { Channel } from './channel.js';
import {
  type CallerMessage,
  type Calls,
  type Handlers,
  type ItemOf,
  type Message,
  messageSchema,
  type RequestOf,
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

  /** Starts the call at the first `next()`; leaving the loop early, or the signal, cancels it. */
  call<K extends keyof Out & string>(
    name: K,
    request: RequestOf<Out, K>,
    signal?: AbortSignal,
  ): AsyncGenerator<ItemOf<Out, K>> {
    return this.#caller.call(name, request, signal);
  }

  /** A call that is answered by one item. Its end is read too: to leave before it would be a word more, to cancel it. */
  async one<K extends keyof Out & string>(name: K, request: RequestOf<Out, K>): Promise<ItemOf<Out, K>> {
    const items: ItemOf<Out, K>[] = [];
    for await (const item of this.#caller.call(name, request)) items.push(item);
    const [answer] = items;
    if (answer === undefined) throw new Error(`the call ${name} ended without an answer`);
    return answer;
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
