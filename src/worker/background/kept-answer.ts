import type { JobDone, JobEnd, JobEvent } from '../../shared/job.js';
import { AnswerBody } from '../answer/answer-body.js';
import { AnswerText } from '../answer/answer-text.js';
import type { SpillFolder } from '../answer/spill-folder.js';
import type { Answer } from '../jobs/running-job.js';

/** Owns what a worker holds of the answer of a background job while it tells it. */
export class KeptAnswer implements AsyncDisposable {
  readonly #text: AnswerText;
  readonly #value: string[] | null;

  constructor(spill: Pick<SpillFolder, 'file'>, isStructured: boolean) {
    this.#text = new AnswerText(spill);
    this.#value = isStructured ? [] : null;
  }

  /** Takes all events, each to `onEvent` first; null for a stream without an end. */
  async collect(
    events: AsyncIterable<JobEvent>,
    onEvent: (event: JobEvent) => Promise<void> = async () => {},
  ): Promise<JobEnd | null> {
    for await (const event of events) {
      await onEvent(event);
      if (event.type === 'text-delta') await this.#text.add(event.text);
      if (event.type === 'text-delta') this.#value?.push(event.text);
      if (event.type !== 'job-end') continue;
      if (event.outcome === 'ok' && event.text !== null) await this.#text.replace(event.text);
      return event;
    }
    return null;
  }

  written(end: JobDone, write: (answer: Answer) => string): AnswerBody {
    const json = this.#value?.join('') ?? '';
    const value: unknown = json === '' ? undefined : JSON.parse(json);
    return new AnswerBody((text) => write({ text, value, end }), this.#text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#text[Symbol.asyncDispose]();
  }
}
