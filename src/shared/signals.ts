/** Functions by the name of their signal, as an interface of the composition declares them. */
type SignalTypes<S> = { readonly [N in keyof S]: (...args: never[]) => unknown };
type SignalHandlers<S extends SignalTypes<S>> = { [N in keyof S]?: (...args: Parameters<S[N]>) => ReturnType<S[N]> };

/**
 * Connects a part with parts that are created after it. Each signal has one handler, set once, and the sender gets its
 * result. So a signal can be an event or a question.
 */
export class Signals<S extends SignalTypes<S>> {
  readonly #handlers: SignalHandlers<S> = {};

  /** Sets the handler of a signal. Throws if the signal has one. */
  on<N extends keyof S>(name: N, handler: (...args: Parameters<S[N]>) => ReturnType<S[N]>): void {
    if (this.#handlers[name] !== undefined) throw new Error(`the signal ${String(name)} has a handler already`);
    this.#handlers[name] = handler;
  }

  /** Calls the handler of a signal and returns its result. Throws if the signal has no handler yet. */
  send<N extends keyof S>(name: N, ...args: Parameters<S[N]>): ReturnType<S[N]> {
    const handler = this.#handlers[name];
    if (handler === undefined) throw new Error(`the signal ${String(name)} has no handler`);
    return handler(...args);
  }
}
