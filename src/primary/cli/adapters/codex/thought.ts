import type { TurnEvent } from '../../contract/adapter.js';

type Kind = 'summary' | 'content';

/**
 * Owns the thought that the program streams: a summary in parts, or the raw thoughts of an open model. If both arrive,
 * the first kind counts.
 */
export class CodexThought {
  #kind: Kind | null = null;
  #part = 0;

  /** Adds a piece, with a blank line between two parts. */
  add(kind: Kind, part: number, piece: string): readonly TurnEvent[] {
    if (piece === '' || (this.#kind !== null && this.#kind !== kind)) return [];
    const isNext = this.#kind !== null && part !== this.#part;
    this.#kind = kind;
    this.#part = part;
    return [{ type: 'thought-delta', text: isNext ? `\n\n${piece}` : piece }];
  }

  /** Ends the thought. Text that was not streamed is sent now. */
  complete(summary: readonly string[], content: readonly string[]): readonly TurnEvent[] {
    const isStreamed = this.#kind !== null;
    this.#kind = null;
    this.#part = 0;
    const text = (summary.length > 0 ? summary : content).join('\n\n');
    const unstreamed = isStreamed || text === '' ? [] : [{ type: 'thought-delta', text } as const];
    return [...unstreamed, { type: 'thought-end' }];
  }
}
