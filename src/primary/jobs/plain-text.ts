import type { Turn } from '../cli/contract/adapter.js';
import type { AnswerTurns, RunTurn } from './answer-turns.js';
import type { StrategyEnd } from './answered.js';

/** Answers with the text of the model as it arrives, up to a stop sequence, and with its calls. */
export async function answerWithText({ job, output }: AnswerTurns, turn: Turn, run: RunTurn): Promise<StrategyEnd> {
  const { stop } = job.request;
  const cutter = new StopCutter(stop);
  const flush = () => output.sendText(cutter.takeBuffered());
  const end = await run(turn, {
    write: (event) => {
      if (event.type === 'text-delta') return output.sendText(cutter.addPiece(event.text));
      flush();
      output.sendEvent(event);
    },
    hasEnough: () => cutter.found !== null,
    flush,
  });
  const isWaiting = (end.calls ?? []).length > 0;
  const ended = ({ found }: StopCutter, text: string | null) => {
    const isCut = found !== null || end.isRepaired === true;
    return { ...end, text, stopSequence: found ?? end.stopSequence ?? null, isCut, isWaiting };
  };
  if (end.text === null) {
    flush();
    return ended(cutter, null);
  }
  const whole = new StopCutter(stop);
  const text = output.correctText(whole.addPiece(end.text) + whole.takeBuffered());
  output.sendMissingCalls(end.calls ?? []);
  return ended(whole, text);
}

/**
 * Finds the first of several stop sequences in a streamed text, and returns the text before it. The first sequence is
 * the one that is complete first, so the result does not depend on how the text is split.
 */
export class StopCutter {
  readonly #sequences: readonly string[];
  readonly #longest: number;
  /** End of the text in which a sequence may begin. */
  #buffered = '';
  #found: string | null = null;

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences;
    this.#longest = Math.max(0, ...sequences.map(({ length }) => length));
  }

  /** The sequence that was found; null before. */
  get found(): string | null {
    return this.#found;
  }

  /** Returns the text that certainly precedes any sequence. */
  addPiece(piece: string): string {
    if (this.#found !== null) return '';
    const text = this.#buffered + piece;
    const at = this.#firstIn(text);
    const end = at ?? text.length - this.#beginsAtEnd(text);
    this.#buffered = at === null ? text.slice(end) : '';
    return text.slice(0, end);
  }

  /** Returns the buffered text at the end of the input. */
  takeBuffered(): string {
    const text = this.#buffered;
    this.#buffered = '';
    return text;
  }

  #firstIn(text: string): number | null {
    let first: { readonly at: number; readonly end: number } | null = null;
    for (const sequence of this.#sequences) {
      const at = text.indexOf(sequence);
      const end = at + sequence.length;
      if (at < 0 || (first !== null && (end > first.end || (end === first.end && at >= first.at)))) continue;
      first = { at, end };
      this.#found = sequence;
    }
    return first?.at ?? null;
  }

  /** Returns the length of the longest suffix of the text that is a prefix of a sequence. */
  #beginsAtEnd(text: string): number {
    for (let length = Math.min(this.#longest - 1, text.length); length > 0; length--) {
      const end = text.slice(-length);
      if (this.#sequences.some((sequence) => sequence.startsWith(end))) return length;
    }
    return 0;
  }
}
