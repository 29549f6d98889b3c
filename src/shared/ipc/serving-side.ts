import { Cancelled, isDefect, toRelayError } from '../errors.js';
import type { CallerMessage, Calls, Handlers, Message } from './message.js';
import { callWindow } from './window.js';

/** One stream being served: aborted by its caller, slowed down by the caller's credit. */
class ServedStream {
  readonly #controller = new AbortController();
  #credit = callWindow;
  #wake: (() => void) | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  grant(count: number): void {
    this.#credit += count;
    this.#wake?.();
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
    this.#wake?.();
  }

  /** Takes the right to send one item; false when the caller has gone. */
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

type AnySingle = (request: unknown) => unknown;
type AnyStream = (request: unknown, signal: AbortSignal) => AsyncIterable<unknown>;

/** Owns the streams this end is serving; what is answered once has nothing to be owned. */
export class ServingSide<In extends Calls> {
  readonly #calls: In;
  readonly #handlers: Handlers<In>;
  readonly #send: (message: Message) => void;
  readonly #onFault: (fault: unknown) => void;
  readonly #serving = new Map<number, ServedStream>();

  constructor(calls: In, handlers: Handlers<In>, send: (message: Message) => void, onFault: (fault: unknown) => void) {
    this.#calls = calls;
    this.#handlers = handlers;
    this.#send = send;
    this.#onFault = onFault;
  }

  receive(message: CallerMessage): void {
    if (message.kind === 'call') void this.#serve(message);
    else if (message.kind === 'credit') this.#serving.get(message.id)?.grant(message.count);
    else this.#serving.get(message.id)?.abort(new Cancelled('cancelled by the caller'));
  }

  close(reason: Error): void {
    for (const stream of this.#serving.values()) stream.abort(reason);
  }

  async #serve({ id, name, request }: Extract<CallerMessage, { kind: 'call' }>): Promise<void> {
    try {
      const called = Object.hasOwn(this.#calls, name) ? this.#calls[name] : undefined;
      if (called === undefined) throw new Error(`no call is named ${name}`);
      const parsed = called.request.parse(request);
      if ('item' in called) await this.#stream(id, this.#handlers[name] as AnyStream, parsed);
      else this.#send({ kind: 'answer', id, answer: await (this.#handlers[name] as AnySingle)(parsed) });
    } catch (error) {
      if (isDefect(error)) this.#onFault(error);
      this.#send({ kind: 'fail', id, failure: failureOf(error) });
    }
  }

  async #stream(id: number, handler: AnyStream, request: unknown): Promise<void> {
    const stream = new ServedStream();
    this.#serving.set(id, stream);
    try {
      for await (const item of handler(request, stream.signal)) {
        if (!(await stream.takeCredit())) return;
        this.#send({ kind: 'item', id, item });
      }
      if (!stream.signal.aborted) this.#send({ kind: 'end', id });
    } catch (error) {
      if (!stream.signal.aborted || isDefect(error)) throw error; // else nobody waits for it
    } finally {
      this.#serving.delete(id);
    }
  }
}

function failureOf(thrown: unknown) {
  const { code, message, details, retryAfterSeconds } = toRelayError(thrown);
  return { code, message, ...(details && { details }), ...(retryAfterSeconds && { retryAfterSeconds }) };
}
