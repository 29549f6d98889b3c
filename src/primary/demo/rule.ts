import type { Memory } from './memory.js';
import type { Sentence } from './sentences.js';

/** One sentence in its conversation. */
export interface Heard extends Sentence {
  readonly memory: Memory;
  readonly introduction: string;
  /** The turns before this one. */
  readonly turn: number;
  /** It is all that was said this turn. */
  readonly alone: boolean;
}

/** What to say to a sentence, or null where the rule does not know it. */
export type Rule = (heard: Heard) => string | null;

/** Says another thing each turn, yet always the same in the same conversation. */
export function choose(turn: number, answers: readonly [string, ...string[]]): string {
  return answers[turn % answers.length] ?? answers[0];
}
