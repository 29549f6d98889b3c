import type { JobDone, Thought } from '../../shared/job.js';
import type { WrittenCall } from './tool-offer.js';

/**
 * Part of an answer. Parts are in the order in which the model has written them; the text parts together are the whole
 * text.
 */
export type AnswerPart =
  /** Piece of the text, or a placeholder that `bodyAround` replaces: use it only inside JSON strings. */
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'call'; readonly call: WrittenCall }
  | ({ readonly type: 'thought' } & Pick<Thought, 'text' | 'signature' | 'redacted'>);

/** Separator of texts that share one field. */
export const blankLine = '\n\n';

/** Joins the texts of all thoughts for an API that has one field for them. Returns '' if no thought has a text. */
export function thoughtText(parts: readonly AnswerPart[]): string {
  const texts = parts.flatMap((part) => (part.type === 'thought' && part.text !== '' ? [part.text] : []));
  return texts.join(blankLine);
}

/** Separates the thoughts of a stream by a blank line. Joined, the pieces are `thoughtText`. */
export class ThoughtPieces {
  #thought: 'none' | 'open' | 'whole' = 'none';

  /** Returns the text to send for a piece of a thought. */
  add(text: string): string {
    const isNext = this.#thought === 'whole';
    if (text !== '') this.#thought = 'open';
    return isNext && text !== '' ? blankLine + text : text;
  }

  /** Ends the open thought. Ignores a thought without text. */
  end(): void {
    if (this.#thought === 'open') this.#thought = 'whole';
  }
}

/** Returns the positions in the text of an answer at which thoughts stand, in UTF-16 units, without the start. */
export function cutsIn({ thoughts = [] }: Pick<JobDone, 'thoughts'>): number[] {
  const places = thoughts.flatMap(({ at }) => (at === null || at === 0 ? [] : [at]));
  return [...new Set(places)];
}

/** Splits a text at these positions. */
export function slicesOf(text: string, cuts: readonly number[]): string[] {
  return [0, ...cuts].map((from, index) => text.slice(from, cuts[index]));
}

/**
 * Returns the parts of an answer in the order in which the model has written them. `slices`: the text, split at the
 * positions of `cutsIn`; empty if there is no text.
 */
export function partsIn(
  thoughts: readonly Thought[],
  slices: readonly string[],
  calls: readonly WrittenCall[],
): AnswerPart[] {
  const parts: AnswerPart[] = [];
  const cuts = cutsIn({ thoughts });
  const texts = slices.map((text) => ({ type: 'text', text }) as const);
  const made = calls.map((call) => ({ type: 'call', call }) as const);
  for (const { at, calls: before, ...thought } of thoughts) {
    const isBehind = (_: unknown, index: number) => at === null || (cuts[index] ?? Number.POSITIVE_INFINITY) <= at;
    parts.push(...texts.splice(0, slices.filter(isBehind).length - (slices.length - texts.length)));
    parts.push(...made.splice(0, before - (calls.length - made.length)), { type: 'thought', ...thought });
  }
  return [...parts, ...texts, ...made];
}
