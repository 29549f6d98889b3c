import type { JobDone } from '../../shared/job.js';
import { AnswerBody, type AnswerSource, onOneLine } from '../answer/answer-body.js';
import type { Primary } from '../http/exchange.js';
import type { Answer } from '../jobs/running-job.js';

/** UTF-16 units of an answer that a reader holds. What is longer is read from the store as often as it is sent. */
const maxHeldLength = 32 * 1024;

/** Whose answer it is. */
export interface JobKey {
  readonly id: string;
  readonly client: string;
}

/** The answer of a background job that has succeeded. However slowly many read it, none holds more than its begin. */
export class KeptAnswer {
  readonly #primary: Primary;
  readonly #job: JobKey;
  readonly #begin: readonly string[];
  readonly #isWhole: boolean;
  readonly end: JobDone;

  /** Rejects with `not_found` where it is forgotten. */
  static async open(primary: Primary, job: JobKey): Promise<KeptAnswer> {
    const begin: string[] = [];
    for (let from = 0; ; ) {
      const { text, end } = await primary.call('jobAnswer', { ...job, from });
      const isWhole = text === '';
      if (!isWhole) begin.push(text);
      from += text.length;
      if (isWhole || from > maxHeldLength) return new KeptAnswer(primary, job, begin, isWhole, end);
    }
  }

  private constructor(primary: Primary, job: JobKey, begin: readonly string[], isWhole: boolean, end: JobDone) {
    this.#primary = primary;
    this.#job = job;
    this.#begin = begin;
    this.#isWhole = isWhole;
    this.end = end;
  }

  /** What is sent of it. `write` writes it out for any text, and for any value where the answer is one. */
  written(isStructured: boolean, write: (answer: Answer) => string): AnswerBody {
    const { end } = this;
    const hasValue = isStructured && this.#begin.length > 0; // a model that refuses gives none
    const body = (text: string, value: string) => write({ text, value: hasValue ? value : undefined, end });
    return new AnswerBody(body, this.#as(escaped), this.#as(onOneLine));
  }

  #as(written: (text: string) => string): AnswerSource {
    const pieces = () => this.#pieces();
    return {
      short: this.#isWhole ? written(this.#begin.join('')) : null,
      bytes: null,
      pieces: async function* () {
        for await (const piece of pieces()) yield written(piece);
      },
    };
  }

  async *#pieces(): AsyncGenerator<string> {
    yield* this.#begin;
    if (this.#isWhole) return;
    for (let from = this.#begin.join('').length; ; ) {
      const { text } = await this.#primary.call('jobAnswer', { ...this.#job, from });
      if (text === '') return;
      from += text.length;
      yield text;
    }
  }
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
