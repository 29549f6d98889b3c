import type { BackgroundJobView } from '../../shared/background.js';
import { fromWire, type RelayError } from '../../shared/errors.js';
import type { WaitReason } from '../../shared/job.js';
import { type EventStream, eventText } from '../http/event-stream.js';
import type { Primary } from '../http/exchange.js';
import { type CompletedAnswer, eventIn, type StreamFormat } from '../jobs/answer-format.js';
import { storedBody } from '../jobs/background.js';
import { follow } from '../jobs/run-job.js';
import { endedJob } from '../openai/responses.js';
import { OwnStream, ownFormats } from './ask.js';

/**
 * The id of the end, beyond those of all texts. It can't depend on the text: a reader may have been sent more while the job
 * ran than the store has, where its host has died or the program has corrected itself.
 */
export const endId = 999_999_999_999_999;

/**
 * Owns how far one reader of a job's events has come: they are those of a streamed request, with ids. The id of the start
 * is 1, of a piece of text one more than the UTF-16 units up to its end. So a reader that comes again gets the rest,
 * whatever pieces it comes in.
 */
export class NumberedStream implements StreamFormat {
  readonly #format: StreamFormat;
  readonly #after: number;
  #length = 0;

  /** `after`: the id of the last event that the reader has. */
  constructor(format: StreamFormat, after: number) {
    this.#format = format;
    this.#after = after;
  }

  begin(): string {
    return '';
  }

  queued(position: number, reason: WaitReason): string {
    return this.#format.queued(position, reason);
  }

  started(queueMs: number): string {
    return this.#numbered(1, () => this.#format.started(queueMs));
  }

  delta(text: string): string {
    const rest = text.slice(Math.max(0, this.#after - 1 - this.#length));
    this.#length += text.length;
    return rest === '' ? '' : this.#numbered(this.#length + 1, () => this.#format.delta(rest));
  }

  end(answer: CompletedAnswer): string {
    return this.#numbered(endId, () => this.#format.end(answer));
  }

  failure(error: RelayError): string {
    return this.#numbered(endId, () => this.#format.failure(error));
  }

  cancelled(jobId: string): string {
    return this.#numbered(endId, () => eventText('cancelled', { job_id: jobId }));
  }

  #numbered(id: number, event: () => string): string {
    return id <= this.#after ? '' : `id: ${id}\n${event()}`;
  }
}

/** The format of the plain request. */
export function formatOf({ form, createdAt }: BackgroundJobView): (answer: CompletedAnswer) => object {
  return form.route === '/v1/responses' ? endedJob(createdAt) : ownFormats[form.route].body;
}

/** Sends all events of a job to a reader that has had `after` last. The answer is that of the store, whatever was sent while the job ran. */
export async function sendJobEvents(
  primary: Primary,
  job: BackgroundJobView,
  after: number,
  out: EventStream,
  client: string,
  signal: AbortSignal,
): Promise<void> {
  const format = new NumberedStream(new OwnStream(formatOf(job), job.requestId), after);
  const end = await follow(primary.stream('jobEvents', { id: job.id, client }, signal), async (event) => {
    const text = eventIn(format, event);
    if (text !== '') await out.write(text, signal);
  });
  if (end === null || after >= endId) return;
  if (end.outcome === 'cancelled') return out.write(format.cancelled(job.id), signal);
  if (end.outcome !== 'ok') return out.write(format.failure(fromWire(end.failure)), signal);
  const body = await storedBody(primary, job, client, (answer) => format.end(answer));
  await out.writeLast(body, signal);
}
