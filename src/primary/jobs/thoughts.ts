import type { ThinkingForm, Thought, ThoughtDelta, ThoughtEnd } from '../../shared/job.js';

/** Position of a thought: the text length in UTF-16 units, and the number of calls, before it. */
type Place = Pick<Thought, 'calls'> & { readonly at: number };

/** Owns the thoughts of one answer, in the form that the caller requested. */
export class Thoughts {
  readonly #form: ThinkingForm | undefined;
  readonly #pass: (event: ThoughtDelta | ThoughtEnd) => void;
  readonly #whole: (Thought & Place)[] = [];
  /** Pieces of the current thought; null between thoughts. */
  #pieces: string[] | null = null;

  /** `pass` gets the events for the caller: each thought has an end. */
  constructor(form: ThinkingForm | undefined, pass: (event: ThoughtDelta | ThoughtEnd) => void) {
    this.#form = form;
    this.#pass = pass;
  }

  get areWanted(): boolean {
    return this.#form !== undefined;
  }

  take(event: ThoughtDelta | ThoughtEnd, place: Place): void {
    if (event.type === 'thought-delta') return this.#grow(event);
    if (event.redacted !== undefined) this.close(place);
    this.#end(event, place);
  }

  /** Ends the current thought, because other output follows. */
  close(place: Place): void {
    if (this.#pieces !== null) this.#end({ type: 'thought-end' }, place);
  }

  /**
   * Returns the thoughts of an answer with this text length. `isCorrected`: whether the final text differs from the
   * streamed text.
   */
  in(length: number, isCorrected: boolean): readonly Thought[] {
    return this.#whole.map((thought) => {
      if (isCorrected) return { ...thought, at: 0 };
      return thought.at === length ? { ...thought, at: null } : thought;
    });
  }

  #grow(event: ThoughtDelta): void {
    this.#pieces ??= [];
    if (this.#form === 'omitted' || event.text === '') return;
    this.#pieces.push(event.text);
    this.#pass(event);
  }

  /** Ends a thought. If the caller wants to see thoughts, an empty one is omitted. */
  #end({ signature, redacted }: ThoughtEnd, { at, calls }: Place): void {
    const text = (this.#pieces ?? []).join('');
    this.#pieces = null;
    const marks = { ...(signature !== undefined && { signature }), ...(redacted !== undefined && { redacted }) };
    if (this.#form === 'summarized' && text === '' && Object.keys(marks).length === 0) return;
    this.#whole.push({ text, ...marks, at, calls });
    this.#pass({ type: 'thought-end', ...marks });
  }
}
