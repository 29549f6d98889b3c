import type { ThinkingForm, Thought, ThoughtDelta, ThoughtEnd } from '../../shared/job.js';

/** How much of the answer stands before a thought. */
type Place = Pick<Thought, 'calls'> & { readonly at: number };

/** Owns what the model has thought in one answer, as far as the caller of its job gets it. */
export class Thoughts {
  readonly #form: ThinkingForm | undefined;
  readonly #pass: (event: ThoughtDelta | ThoughtEnd) => void;
  readonly #whole: (Thought & Place)[] = [];
  /** Of the thought that has begun; null between two. */
  #pieces: string[] | null = null;

  /** `pass` takes what the caller gets: each thought has its end. */
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

  /** What follows is no part of the thought that has begun. */
  close(place: Place): void {
    if (this.#pieces !== null) this.#end({ type: 'thought-end' }, place);
  }

  /** Those of the whole answer, whose text has this length. `isCorrected`: the text is another than what was passed on. */
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

  /** One that shows nothing is left out, where the caller wants to see it. */
  #end({ signature, redacted }: ThoughtEnd, { at, calls }: Place): void {
    const text = (this.#pieces ?? []).join('');
    this.#pieces = null;
    const marks = { ...(signature !== undefined && { signature }), ...(redacted !== undefined && { redacted }) };
    if (this.#form === 'summarized' && text === '' && Object.keys(marks).length === 0) return;
    this.#whole.push({ text, ...marks, at, calls });
    this.#pass({ type: 'thought-end', ...marks });
  }
}
