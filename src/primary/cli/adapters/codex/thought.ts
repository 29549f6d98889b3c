import type { TurnEvent } from '../../contract/adapter.js';

type Kind = 'summary' | 'content';

/**
 * Owns the thought that the program streams: a summary in parts, or what an open model has thought itself. Where there are
 * both, the first that comes counts.
 */
export class CodexThought {
  #kind: Kind | null = null;
  #part = 0;

  /** A blank line stands between two parts. */
  add(kind: Kind, part: number, piece: string): readonly TurnEvent[] {
    if (piece === '' || (this.#kind !== null && this.#kind !== kind)) return [];
    const isNext = this.#kind !== null && part !== this.#part;
    this.#kind = kind;
    this.#part = part;
    return [{ type: 'thought-delta', text: isNext ? `\n\n${piece}` : piece }];
  }

  /** The thought is whole. What was not streamed comes now. */
  complete(summary: readonly string[], content: readonly string[]): readonly TurnEvent[] {
    const isStreamed = this.#kind !== null;
    this.#kind = null;
    this.#part = 0;
    const text = (summary.length > 0 ? summary : content).join('\n\n');
    const rest = isStreamed || text === '' ? [] : [{ type: 'thought-delta', text } as const];
    return [...rest, { type: 'thought-end' }];
  }
}
