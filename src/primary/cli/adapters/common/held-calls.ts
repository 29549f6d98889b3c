import type { ToolResult } from '../../contract/adapter.js';

/** Open call. The program's request for its result and the client's result may arrive in either order. */
interface HeldCall<Request> {
  request: Request | null;
  result: ToolResult | null;
}

/**
 * Owns the open calls of client tools of one program. A call is open until the client's result has been written;
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

  /** Whether two of these calls of one message share an id, or an earlier call had it. The program confuses the results of such calls. */
  areRepeated(calls: readonly { readonly id: string }[]): boolean {
    const ids = calls.map(({ id }) => id);
    return new Set(ids).size < ids.length || ids.some((id) => this.#answered.has(id));
  }

  /** Registers a call that the model has made. */
  called(id: string): void {
    if (!this.#open.has(id)) this.#open.set(id, { request: null, result: null });
  }

  /** Handles the program's request for the result of a call. Returns the text to write now. */
  requested(id: string, request: Request): string {
    return this.#complete(id, { request });
  }

  /** Returns the text to write now: results that the program has already requested, in the order of the calls. */
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
