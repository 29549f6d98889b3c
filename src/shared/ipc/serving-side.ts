import { Cancelled, RelayError, toRelayError } from '../errors.js';
import type { CallerMessage, Calls, Handlers, Message } from './message.js';
import { callWindow } from './window.js';

/** One call being served: aborted by its caller, slowed down by the caller's credit. */
class ServedCall {
  readonly controller = new AbortController();
  #credit = callWindow;
  #wake: (() => void) | undefined;

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  grant(count: number): void {
    this.#credit += count;
    this.#wake?.();
  }

  abort(reason: Error): void {
    this.controller.abort(reason);
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

/** Owns the calls this end is serving. */
export class ServingSide<In extends Calls> {
  readonly #calls: In;
  readonly #handlers: Handlers<In>;
  readonly #send: (message: Message) => void;
  readonly #onFault: (fault: unknown) => void;
  readonly #serving = new Map<number, ServedCall>();

  constructor(calls: In, handlers: Handlers<In>, send: (message: Message) => void, onFault: (fault: unknown) => void) {
    this.#calls = calls;
    this.#handlers = handlers;
    this.#send = send;
    this.#onFault = onFault;
  }

  receive(message: CallerMessage): void {
    if (message.kind === 'call') void this.#serve(message.id, message.name, message.request);
    else if (message.kind === 'credit') this.#serving.get(message.id)?.grant(message.count);
    else this.#serving.get(message.id)?.abort(new Cancelled('cancelled by the caller'));
  }

  close(reason: Error): void {
    for (const call of this.#serving.values()) call.abort(reason);
  }

  async #serve(id: number, name: string, rawRequest: unknown): Promise<void> {
    const call = new ServedCall();
    this.#serving.set(id, call);
    try {
      await this.#stream(id, call, this.#start(name, rawRequest, call.signal));
      if (!call.signal.aborted) this.#send({ kind: 'end', id });
    } catch (error) {
      if (!isExpected(error)) this.#onFault(error);
      if (!call.signal.aborted) this.#send({ kind: 'fail', id, failure: failureOf(error) });
    } finally {
      this.#serving.delete(id);
    }
  }

  #start(name: string, rawRequest: unknown, signal: AbortSignal): AsyncIterable<unknown> {
    const types = this.#calls[name];
    const handler = this.#handlers[name];
    if (types === undefined || handler === undefined) throw new Error(`no call is named ${name}`);
    return handler(types.request.parse(rawRequest) as never, signal);
  }

  async #stream(id: number, call: ServedCall, items: AsyncIterable<unknown>): Promise<void> {
    for await (const item of items) {
      if (!(await call.takeCredit())) return;
      this.#send({ kind: 'item', id, item });
    }
  }
}

function isExpected(thrown: unknown): boolean {
  return thrown instanceof RelayError || thrown instanceof Cancelled;
}

function failureOf(thrown: unknown) {
  const { code, message, details, retryAfterSeconds } = toRelayError(thrown);
  return { code, message, ...(details && { details }), ...(retryAfterSeconds && { retryAfterSeconds }) };
}
