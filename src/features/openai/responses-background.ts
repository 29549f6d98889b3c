import { z } from 'zod';
import { switchQuery } from '../../shared/api/jobs.js';
import type { JobStatus, JobView } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { fromWire, invalid, type RelayError } from '../../shared/errors.js';
import type { JobEnd } from '../../shared/job.js';
import type { SentBody } from '../../worker/http/answer-recorder.js';
import { EventStream } from '../../worker/http/event-stream.js';
import type { Primary, Reply } from '../../worker/http/exchange.js';
import { publicCodeOf, untilGone, workerLeaves } from '../../worker/http/responses.js';
import {
  type CompletedAnswer,
  eventIn,
  type Opening,
  type StreamFormat,
  type WrittenEvent,
} from '../../worker/jobs/answer-format.js';
import { follow } from '../../worker/jobs/run-job.js';
import { formOf, jobCalls, storedBody } from '../background/answers.js';
import { frameOf, openResponse, type ResponseFrame, ResponseStream, responseFormat } from './responses-answer.js';
import { type Repeated, repeatedOf } from './responses-repeated.js';
import { SteadyPieces } from './steady-pieces.js';

/** Responses of background jobs, and the streams of their events. */

export const streamQuery = switchQuery.meta({
  description: 'The events of a background response, until it ends. Each event always has the same `sequence_number`.',
});
export const startingAfterQuery = z
  .string()
  .regex(/^\d{1,15}$/, 'must be the sequence_number of an event')
  .meta({ description: 'The `sequence_number` of the last event that you have; needs `stream=true`.' });

const statusOf = {
  queued: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
} as const satisfies Record<JobStatus, string>;

/** Returns a function that writes the body of a background job that has succeeded. */
export function endedJob(job: JobView): (answer: CompletedAnswer) => object {
  const form = responseFormat(frameOfJob(job));
  const background = job.form?.line === undefined;
  return (answer) => ({ ...form.body({ ...answer, requestId: job.id }), background });
}

/** Returns the response of a background job that has no answer (yet). */
export function unfinished(job: JobView): object {
  const { status, failure } = job;
  const response = openResponse(openingOf(job), frameOfJob(job), statusOf[status]);
  if (failure === null) return response;
  return { ...response, error: { code: publicCodeOf(fromWire(failure)), message: failure.message } };
}

export function secondsOf(ms: number): number {
  return Math.floor(ms / 1000);
}

function frameOfJob({ form, createdAt, endedAt }: JobView): ResponseFrame {
  // Jobs of earlier versions were stored without the repeated fields.
  const repeated = (form?.repeated as Repeated | undefined) ?? repeatedOf({});
  return frameOf(secondsOf(createdAt), { repeated, completedAt: () => secondsOf(endedAt ?? createdAt) });
}

function openingOf(job: JobView): Opening {
  const { model, tools: forms = {}, hasTools = false, hasThoughts = false } = formOf(job);
  return { requestId: job.id, model: model ?? '', forms, hasTools, hasThoughts };
}

/** Output whose text is split into pieces. */
type PieceType = Extract<WrittenEvent, { readonly text: string }>['type'];

/**
 * Events of a background response, which depend only on the stored events of its job. Therefore each event has the same
 * number for all readers, also later and on another host.
 */
class BackgroundStream implements StreamFormat {
  readonly #stream: ResponseStream;
  readonly #pieces = new SteadyPieces();
  #type: PieceType = 'text-delta';
  readonly #job: JobView;
  #endedAt: number | null;

  /** `after`: number of the last event that the reader has; events up to it are empty. */
  constructor(job: JobView, after: number) {
    this.#job = job;
    this.#endedAt = job.endedAt;
    const completedAt = () => secondsOf(this.#endedAt ?? job.createdAt);
    this.#stream = new ResponseStream(openingOf(job), { ...frameOfJob(job), completedAt }, { after });
  }

  /** Number of events so far, including empty ones. */
  get count(): number {
    return this.#stream.count;
  }

  formatBeginning(): string {
    return this.#stream.formatBeginning();
  }

  formatPosition(position: number): string {
    return this.#stream.formatPosition(position);
  }

  formatStart(): string {
    return this.#stream.formatStart();
  }

  formatEvent(event: WrittenEvent): string {
    return 'text' in event ? this.#add(event.type, event.text) : this.#flush() + this.#stream.formatEvent(event);
  }

  /** Ends the output, before the events of the end. `endedAt`: time of the end, in milliseconds since the epoch. */
  endOutput(endedAt: number | null): string {
    this.#endedAt = endedAt;
    return this.#flush();
  }

  formatEnd(answer: CompletedAnswer): string {
    return this.#stream.formatEnd(answer);
  }

  formatFailure(error: RelayError): string {
    return this.#stream.formatFailure(error);
  }

  /** Ends the response of a cancelled job as `GET` shows it, because the API has no event for this. */
  cancelled(): string {
    return this.#stream.event('response.failed', {
      response: openResponse(openingOf(this.#job), frameOfJob(this.#job), 'cancelled'),
    });
  }

  /** Gives the following events higher numbers than this one. */
  skipTo(number: number): void {
    this.#stream.skipTo(number);
  }

  #add(type: PieceType, text: string): string {
    const remainder = type === this.#type ? '' : this.#flush();
    this.#type = type;
    return (
      remainder +
      [...this.#pieces.addText(text)].map((piece) => this.#stream.formatEvent({ type, text: piece })).join('')
    );
  }

  #flush(): string {
    const text = this.#pieces.takeRest();
    return text === '' ? '' : this.#stream.formatEvent({ type: this.#type, text });
  }
}

export interface ResponseStreamParts {
  readonly primary: Primary;
  readonly clock: Clock;
  /** Aborted when this worker is about to exit. */
  readonly closing: AbortSignal;
}

/**
 * Streams the events of a background response after the number `after`, until the response ends. The stream stops
 * without an end when this worker exits. Rejects with `validation_error` if `after` is beyond the last event.
 */
export async function streamResponse(
  { primary, clock, closing }: ResponseStreamParts,
  res: Reply,
  job: JobView,
  after: number,
): Promise<void> {
  using out = new EventStream(res, clock);
  if (res.req.method === 'HEAD') {
    out.beginStream();
    return out.end();
  }
  using caller = untilGone(res, job.endedAt === null ? closing : undefined);
  const reader = new ResponseReader(primary, job, after, res.locals.client);
  try {
    await reader.sendEvents(out, caller.signal);
  } catch (error) {
    if (error !== workerLeaves || res.writableNeedDrain) throw error;
  }
  out.beginStream(); // a reader that has all events gets none
  out.end();
}

/** Reads the events of a background job, and writes the events of its response. */
class ResponseReader {
  readonly #primary: Primary;
  readonly #job: JobView;
  readonly #after: number;
  readonly #client: ClientText;
  readonly #stream: BackgroundStream;

  constructor(primary: Primary, job: JobView, after: number, client: ClientText) {
    this.#primary = primary;
    this.#job = job;
    this.#after = after;
    this.#client = client;
    this.#stream = new BackgroundStream(job, after);
  }

  async sendEvents(out: EventStream, signal: AbortSignal): Promise<void> {
    const key = { id: this.#job.id, client: this.#client };
    await this.#write(out, this.#stream.formatBeginning(), signal);
    const { tools } = formOf(this.#job);
    const end = await follow(jobCalls(this.#primary).stream('jobEvents', key, signal), (event) =>
      this.#write(out, eventIn(this.#stream, event, tools), signal),
    );
    if (end === null) return;
    const last = await this.#endOf(end);
    if (this.#after >= this.#stream.count) throw beyondEnd(this.#stream.count - 1);
    await out.writeLast(last, signal);
  }

  /** Writes events. Sends no headers before the event `after`, because this number may be wrong. */
  async #write(out: EventStream, events: string, signal: AbortSignal): Promise<void> {
    if (this.#stream.count > this.#after) await out.writeEvents(events, signal);
  }

  async #endOf(end: JobEnd): Promise<SentBody | string> {
    const stream = this.#stream;
    if (end.outcome === 'cancelled') return stream.endOutput(null) + stream.cancelled();
    if (end.outcome !== 'ok') {
      const remainder = stream.endOutput(null);
      // The host died with the events that it had sent: the reader may have more of them than were stored.
      if (end.failure.reason === 'host_lost') stream.skipTo(this.#after + 1);
      return remainder + stream.formatFailure(fromWire(end.failure));
    }
    const { endedAt } = await jobCalls(this.#primary).call('job', { id: this.#job.id, client: this.#client });
    const remainder = stream.endOutput(endedAt);
    const { id: requestId } = this.#job; // the id of the response, in all of its events
    return storedBody(
      this.#primary,
      this.#job,
      this.#client,
      (answer) => remainder + stream.formatEnd({ ...answer, requestId }),
    );
  }
}

function beyondEnd(last: number): RelayError {
  return invalid('starting_after', `is beyond the last event of this response, which has the number ${last}`);
}
