import type { BackgroundJobView } from '../../shared/background.js';
import { fromWire } from '../../shared/errors.js';
import type { JobEnd, JobEvent } from '../../shared/job.js';
import { type EventStream, eventText } from '../http/event-stream.js';
import { errorBodyOf } from '../http/send-json.js';
import type { Answer } from '../jobs/running-job.js';
import type { KeptAnswer } from './kept-answer.js';
import { resultOf } from './result.js';

/**
 * The id of the end, beyond those of all texts. It can't depend on the text: what was told while the job ran may be longer
 * than what is kept of it, where its host has died or the program has corrected itself.
 */
export const endId = 999_999_999_999_999;

/**
 * Owns what one reader of a job's events is told: those of a streamed request, with ids. The id of the start is 1, of a
 * piece of text one more than the UTF-16 units up to its end. So a reader that comes again gets the rest, whatever pieces
 * it is told in.
 */
export class JobEvents {
  readonly #job: BackgroundJobView;
  readonly #after: number;
  readonly #out: EventStream;
  readonly #signal: AbortSignal;
  readonly #openAnswer: () => Promise<KeptAnswer>;
  #length = 0;

  /** `openAnswer` is called where the job has succeeded. */
  constructor(
    job: BackgroundJobView,
    after: number,
    out: EventStream,
    signal: AbortSignal,
    openAnswer: () => Promise<KeptAnswer>,
  ) {
    this.#openAnswer = openAnswer;
    this.#job = job;
    this.#after = after;
    this.#out = out;
    this.#signal = signal;
  }

  async tell(event: JobEvent): Promise<void> {
    if (event.type === 'job-queued')
      await this.#send(null, 'queued', { position: event.position, reason: event.reason });
    if (event.type === 'job-start') await this.#send(1, 'started', { queue_ms: event.queueMs });
    if (event.type === 'text-delta') await this.#tellText(event.text);
    if (event.type === 'job-end') await this.#end(event);
  }

  async #tellText(text: string): Promise<void> {
    const toldLength = Math.max(0, this.#after - 1);
    const rest = text.slice(Math.max(0, toldLength - this.#length));
    this.#length += text.length;
    if (rest !== '') await this.#send(this.#length + 1, 'delta', { text: rest });
  }

  /** The answer is that of the store, whatever was told while the job ran. */
  async #end(end: JobEnd): Promise<void> {
    if (this.#after >= endId) return;
    if (end.outcome === 'cancelled') return this.#send(endId, 'cancelled', { job_id: this.#job.id });
    if (end.outcome !== 'ok')
      return this.#send(endId, 'error', errorBodyOf(fromWire(end.failure), this.#job.requestId));
    const answer = await this.#openAnswer();
    const done = (told: Answer) => `id: ${endId}\n${eventText('done', resultOf(this.#job, told))}`;
    const body = answer.written(this.#job.form.isStructured, done);
    await this.#out.writeLast(body, this.#signal);
  }

  async #send(id: number | null, event: string, content: object): Promise<void> {
    if (id !== null && id <= this.#after) return;
    await this.#out.write(`${id === null ? '' : `id: ${id}\n`}${eventText(event, content)}`, this.#signal);
  }
}
