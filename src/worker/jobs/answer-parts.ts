import type { JobDone, Thought } from '../../shared/job.js';
import type { WrittenCall } from './tool-offer.js';

/** A part of an answer, in the order in which the model has written it. The parts of the text are the whole of it. */
export type AnswerPart =
  /** Stands for a part of the text, which may be long: only for JSON strings. */
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'call'; readonly call: WrittenCall }
  | ({ readonly type: 'thought' } & Pick<Thought, 'text' | 'signature' | 'redacted'>);

/** Between two thoughts, which have one field together. */
export const blankLine = '\n\n';

/** All thoughts as one text, for an API with one field for them. Empty where none has a text. */
export function thoughtText(parts: readonly AnswerPart[]): string {
  const texts = parts.flatMap((part) => (part.type === 'thought' && part.text !== '' ? [part.text] : []));
  return texts.join(blankLine);
}

/** Where thoughts cut the text of an answer: UTF-16 units. */
export function cutsIn({ thoughts = [] }: Pick<JobDone, 'thoughts'>): number[] {
  const places = thoughts.flatMap(({ at }) => (at === null || at === 0 ? [] : [at]));
  return [...new Set(places)];
}

/** A text as it is cut there. */
export function slicesOf(text: string, cuts: readonly number[]): string[] {
  return [0, ...cuts].map((from, index) => text.slice(from, cuts[index]));
}

/** `slices`: of the text, as the thoughts cut it; none without any text. */
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
