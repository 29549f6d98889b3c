import type { Clock } from '../../shared/clock.js';
import { fromWire, isCancelled, RelayError, toRelayError } from '../../shared/errors.js';
import {
  type AddedMessage,
  type JobAdmitted,
  type JobDone,
  type JobEnd,
  type JobEvent,
  type JobFailed,
  type JobRequest,
  type Message,
  type OptionalWish,
  unknownJobUsage,
} from '../../shared/job.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import type { SentBody } from '../http/answer-recorder.js';
import type { BodyMemory } from '../http/body-memory.js';
import { EventStream } from '../http/event-stream.js';
import type { JobFigures, JobProgress, Primary, Reply } from '../http/exchange.js';
import { onceFor, publicCodeOf, sendBody, untilGone } from '../http/responses.js';
import type { JobAdmission } from './admission.js';
import {
  type AnswerFormat,
  type CompletedAnswer,
  completed,
  cutsIn,
  eventIn,
  isWhole,
  type Opening,
  refusedEnd,
  slicesOf,
} from './answer-format.js';
import { AnswerText, type SpillFolder } from './answer-text.js';
import type { JobInspector } from './documents.js';
import { inWordsOf, noteDroppedTools, type ParsedRequest, requestOf, setFallback, setIgnored } from './job-request.js';

/** Finished answer whose end the client does not have yet. */
export interface UnsentAnswer {
  /** Returns the answer as the history of the next request will contain it. */
  message(): Promise<Message>;
  /** Messages that the model has got during its answer. */
  readonly additions: readonly AddedMessage[];
  /** Returns the JSON body of the answer without streaming. */
  body(): Promise<string>;
}

/**
 * Whether the event precedes the model's output. The first event of an API names the model, and is delayed until then.
 */
function comesBeforeAnswer({ type }: JobEvent): boolean {
  return type === 'job-admitted' || type === 'job-queued' || type === 'job-start' || type === 'job-end';
}

/** Dependencies of the routes that run jobs. */
export interface JobParts {
  readonly primary: Primary;
  readonly features: JobAdmission;
  readonly bodies: BodyMemory;
  readonly spill: Pick<SpillFolder, 'file'>;
  readonly documents: JobInspector;
  readonly clock: Clock;
}

/**
 * Has the primary run the job until it ends or the client disconnects, and answers in this format. A repeated
 * request can get a recorded answer without a job. Throws if an error body can still be sent, if the client disconnects,
 * and for defects. `whenWhole` is awaited before the end of the answer is sent.
 */
export async function answerWithJob(
  parts: Omit<JobParts, 'bodies'>,
  res: Reply,
  parsed: ParsedRequest,
  formatOf: AnswerFormat | ((request: JobRequest) => AnswerFormat),
  whenWhole: (answer: UnsentAnswer, request: JobRequest) => Promise<void> = async () => {},
): Promise<void> {
  const { featureFields: fields = {}, serviceTier } = parsed.job;
  const submitted = { req: res.req, fields, serviceTier, isBackground: false };
  parts.features.admitJob(submitted);
  const annotations = parts.features.annotateJob(submitted);
  using client = untilGone(res);
  noteDroppedTools(parts.primary, res, parsed);
  const request = { ...(await requestOf(parsed.job, parts, res)), ...annotations };
  const format = typeof formatOf === 'function' ? formatOf(request) : formatOf;
  await onceFor(res, parsed.job.stream ? 'stream' : 'plain', async () => {
    const job = parts.primary.stream('run', request, client.signal); // all below is for the answer
    await using text = new AnswerText(parts.spill);
    const report = new JobReport(parts.clock);
    res.locals.job = report;
    const events = report.following(job);
    const whole = (answer: UnsentAnswer) => whenWhole(answer, request);
    const asParsed = { ...parsed, ignored: withoutTier(parsed.ignored, request) };
    const writer = new AnswerWriter(res, asParsed, format, text, client.signal, whole);
    try {
      if (parsed.job.stream) await writer.stream(events, parts.clock);
      else await writer.plain(events);
    } catch (error) {
      if (!report.wasAdmitted && !isCancelled(error)) res.locals.job = null; // the job was refused
      // The client has already paid for a job that has started: a retry by its SDK would cost the same again.
      if (format.isForSdks && report.hasStarted && !res.headersSent) res.set('x-should-retry', 'false');
      throw error;
    }
  });
}

/** Removes the service tier from the ignored fields if it has an effect. */
function withoutTier(ignored: readonly string[], { priority }: JobRequest): readonly string[] {
  return priority === undefined ? ignored : ignored.filter((field) => field !== 'service_tier');
}

/** Writes the answer to one request. */
class AnswerWriter {
  readonly #res: Reply;
  readonly #parsed: ParsedRequest;
  readonly #format: AnswerFormat;
  readonly #text: AnswerText;
  readonly #signal: AbortSignal;
  #admission: JobAdmitted | null = null;
  /** Model that answers; null until its CLI has reported it. */
  #model: string | null = null;

  readonly #whenWhole: (answer: UnsentAnswer) => Promise<void>;

  constructor(
    res: Reply,
    parsed: ParsedRequest,
    format: AnswerFormat,
    text: AnswerText,
    signal: AbortSignal,
    whenWhole: (answer: UnsentAnswer) => Promise<void>,
  ) {
    this.#whenWhole = whenWhole;
    this.#res = res;
    this.#parsed = parsed;
    this.#format = format;
    this.#text = text;
    this.#signal = signal;
  }

  async plain(events: AsyncIterable<JobEvent>): Promise<void> {
    const end = await this.#endOf(events, async () => {});
    this.#setIgnored(end.ignores);
    this.#nameConversation(end.conversation?.id);
    const body = this.#bodyOf(end, (answer) => stringifyExactly(this.#format.body(answer)));
    await sendBody(this.#res, body, this.#signal);
  }

  /**
   * Streams the answer. An error before the admission of the job is sent as an error body. A later error is sent as an
   * event, after which no SDK repeats the request.
   */
  async stream(events: AsyncIterable<JobEvent>, clock: Clock): Promise<void> {
    let format = this.#format.stream(this.#opening);
    let hasBegun = false;
    const begin = () => {
      if (hasBegun) return '';
      hasBegun = true;
      format = this.#format.stream(this.#opening); // the model is known now, if its CLI reports it early
      return format.formatBeginning();
    };
    using out = new EventStream(this.#res, clock, format.ping && (() => format.ping?.() ?? ''), this.#format.manner);
    try {
      const end = await this.#endOf(events, async (event) => {
        if (event.type === 'job-admitted') {
          this.#nameConversation(event.conversationId);
          out.beginStream();
        }
        if (event.type === 'job-model') this.#model = event.model;
        const start = comesBeforeAnswer(event) ? '' : begin();
        await out.writeEvents(start + eventIn(format, event, this.#parsed.forms), this.#signal);
      });
      this.#model ??= end.model;
      const start = begin();
      await out.writeLast(
        this.#bodyOf(end, (answer) => start + format.formatEnd(answer)),
        this.#signal,
      );
    } catch (error) {
      await this.#failInside(out, () => begin() + format.formatFailure(toRelayError(error)), error);
    }
    out.end();
  }

  async #failInside(out: EventStream, written: () => string, error: unknown): Promise<void> {
    if (isCancelled(error) || !this.#res.headersSent) throw error;
    const failure = toRelayError(error);
    this.#res.locals.error = publicCodeOf(failure);
    await out.writeFailure(written(), failure, this.#signal);
    if (error === failure) return;
    out.end();
    throw error; // a defect of this service, which must also be logged
  }

  /** Waits for the end of the job. Rejects with the error of a job without an answer. */
  async #endOf(events: AsyncIterable<JobEvent>, onEvent: (event: JobEvent) => Promise<void>): Promise<JobDone> {
    try {
      const end = await follow(events, async (event) => {
        if (event.type === 'job-admitted') this.#admit(event);
        await onEvent(event);
        if (event.type === 'text-delta') await this.#text.addText(event.text);
      });
      if (end === null) throw new Error('a job ended without an end');
      setFallback(this.#res, end.fallback);
      if (end.outcome !== 'ok') {
        const refused = this.#format.showsRefusals ? refusedEnd(end) : null;
        if (refused !== null) return refused;
        throw failureOf(end);
      }
      if (end.text !== null) await this.#text.replace(end.text);
      await this.#whenWhole(this.#wholeOf(end));
      return end;
    } catch (error) {
      throw inWordsOf(this.#parsed, error);
    }
  }

  #wholeOf(end: JobDone): UnsentAnswer {
    const { calls } = end;
    return {
      additions: end.additions ?? [],
      message: async () => {
        const text = await this.#text.whole();
        return { role: 'assistant', text, ...(calls !== undefined && { calls }) };
      },
      body: async () => {
        const text = await this.#text.whole();
        return stringifyExactly(this.#format.body(this.#completed(text, undefined, slicesOf(text, cutsIn(end)), end)));
      },
    };
  }

  #completed(text: string, value: string | undefined, slices: readonly string[], end: JobDone): CompletedAnswer {
    return completed(this.#opening, { text, value, slices, end, hasText: this.#text.short !== '' });
  }

  #admit(admission: JobAdmitted): void {
    this.#admission = admission;
    const { session } = admission;
    this.#setIgnored();
    if (session !== null) this.#res.set('X-Session', session);
    setFallback(this.#res, admission.fallback);
  }

  /** `refused`: optional settings that the model has refused since the admission. */
  #setIgnored(refused: readonly OptionalWish[] = []): void {
    const { ignored, effortField, wishFields } = this.#parsed;
    const { ignoresEffort = false, ignores = [] } = this.#admission ?? {};
    const ignoredOptions = [...new Set([...ignores, ...refused])].flatMap((wish) => wishFields[wish] ?? []);
    const ignoredEffort = ignoresEffort && effortField !== null ? [effortField] : [];
    setIgnored(this.#res, [...ignored, ...ignoredEffort, ...ignoredOptions]);
  }

  /**
   * Sets the header by which a front, which cannot read the body, sends the next turn to the host of the conversation.
   */
  #nameConversation(id: string | undefined): void {
    if (id !== undefined) this.#res.set('X-Conversation-Id', id);
  }

  get #opening(): Opening {
    const { model, forms, job } = this.#parsed;
    const { requestId } = this.#res.locals;
    const hasTools = job.offer !== undefined || job.search !== undefined;
    const hasThoughts = job.thinking !== undefined;
    const tier = this.#admission?.tier;
    return { requestId, model: this.#model ?? this.#admission?.model ?? model, forms, hasTools, hasThoughts, tier };
  }

  #bodyOf(end: JobDone, write: (answer: ReturnType<typeof completed>) => string): SentBody {
    const form = { isStructured: this.#parsed.job.schema !== undefined && isWhole(end), cuts: cutsIn(end) };
    return this.#text.body(form, (text, value, slices) => write(this.#completed(text, value, slices, end)));
  }
}

/**
 * Returns the error for the client. A job that was cancelled through the API ends with `forbidden`: its client is still
 * connected, and SDKs do not repeat a request after this code.
 */
function failureOf({ failure }: JobFailed): RelayError {
  const isEnded = failure.cancelledBy !== undefined;
  return isEnded ? new RelayError('forbidden', failure.message) : fromWire(failure);
}

/**
 * Passes each event of a job to `onEvent`, for the client of a request or a reader of a background job. Returns the end,
 * or null if the events stop without one.
 */
export async function follow(
  events: AsyncIterable<JobEvent>,
  onEvent: (event: JobEvent) => Promise<void>,
): Promise<JobEnd | null> {
  for await (const event of events) {
    if (event.type === 'job-end') return event;
    await onEvent(event);
  }
  return null;
}

type JobState =
  | { readonly name: 'asked' | 'waiting' }
  | { readonly name: 'running'; readonly sinceMs: number; readonly queueMs: number }
  | { readonly name: 'ended'; readonly end: JobEnd; readonly hadSlot: boolean };

/**
 * Progress of one job for the request log. If the response closes before the job has ended, its outcome is `cancelled`.
 */
export class JobReport implements JobProgress {
  readonly #clock: Clock;
  readonly #arrivedMs: number;
  #state: JobState = { name: 'asked' };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#arrivedMs = clock.monotonicMs();
  }

  /** Whether the job was admitted, which its first event reports. */
  get wasAdmitted(): boolean {
    return this.#state.name !== 'asked';
  }

  /** Whether the job has received a slot. */
  get hasStarted(): boolean {
    const state = this.#state;
    return state.name === 'running' || (state.name === 'ended' && state.hadSlot);
  }

  /**
   * Passes the events on, and ends the call as soon as the job has ended: a client that disconnects later has not
   * cancelled the job.
   */
  async *following(events: AsyncGenerator<JobEvent>): AsyncGenerator<JobEvent> {
    try {
      for (let step = await events.next(); step.done !== true; step = await events.next()) {
        this.follow(step.value);
        if (this.#state.name === 'ended') events.next().catch(() => {});
        yield step.value;
      }
    } finally {
      if (this.#state.name !== 'ended') await events.return(undefined);
    }
  }

  follow(event: JobEvent): void {
    if (event.type === 'job-admitted' || event.type === 'job-queued') this.#state = { name: 'waiting' };
    if (event.type === 'job-end') this.#state = { name: 'ended', end: event, hadSlot: this.hasStarted };
    if (event.type === 'job-start') {
      this.#state = { name: 'running', sinceMs: this.#clock.monotonicMs(), queueMs: event.queueMs };
    }
  }

  figures(): JobFigures {
    if (this.#state.name === 'ended') return this.#state.end;
    const now = this.#clock.monotonicMs();
    const { sinceMs, queueMs } =
      this.#state.name === 'running' ? this.#state : { sinceMs: now, queueMs: Math.round(now - this.#arrivedMs) };
    return { outcome: 'cancelled', queueMs, executionMs: Math.round(now - sinceMs), ...unknownJobUsage };
  }
}
