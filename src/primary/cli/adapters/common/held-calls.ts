import type { ToolResult } from '../../contract/adapter.js';

/** The program's request for a call and the client's result come in either order. */
interface HeldCall<Request> {
  request: Request | null;
  result: ToolResult | null;
}

/**
 * Owns the calls of client tools that one program has open. A call is open until the client's result has been written;
 * `answerTo` makes the line for it.
 */
export class HeldCalls<Request> {
  readonly #answerTo: (request: Request, result: ToolResult) => string;
  readonly #open = new Map<string, HeldCall<Request>>();
  readonly #answered = new Set<string>();

  constructor(answerTo: (request: Request, result: ToolResult) => string) {
    this.#answerTo = answerTo;
  }

  /** Whether the program waits for results. */
  get isWaiting(): boolean {
    return this.#open.size > 0;
  }

  has(id: string): boolean {
    return this.#open.has(id);
  }

  /** Whether these calls of one message repeat an id, or that of an earlier call. Then the program confuses their results. */
  areRepeated(calls: readonly { readonly id: string }[]): boolean {
    const ids = calls.map(({ id }) => id);
    return new Set(ids).size < ids.length || ids.some((id) => this.#answered.has(id));
  }

  /** The model has made this call. */
  called(id: string): void {
    if (!this.#open.has(id)) this.#open.set(id, { request: null, result: null });
  }

  /** The program asks for the result of this call. Returns what to write now. */
  requested(id: string, request: Request): string {
    return this.#complete(id, { request });
  }

  /** Returns what to write now: the results, in the order of the calls, for which the program has asked already. */
  answer(results: readonly ToolResult[]): string {
    const byId = new Map(results.map((result) => [result.id, result]));
    const answers = [...this.#open.keys()].map((id) => {
      const result = byId.get(id);
      return result === undefined ? '' : this.#complete(id, { result });
    });
    return answers.join('');
  }

  #complete(id: string, part: Partial<HeldCall<Request>>): string {
    const { request, result } = { request: null, result: null, ...this.#open.get(id), ...part };
    this.#open.set(id, { request, result });
    if (request === null || result === null) return '';
    this.#open.delete(id);
    this.#answered.add(id);
    return this.#answerTo(request, result);
  }
}
