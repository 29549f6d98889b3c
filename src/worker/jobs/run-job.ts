import type { Clock } from '../../shared/clock.js';
import { fromWire, isCancelled, RelayError, toRelayError } from '../../shared/errors.js';
import type {
  JobAdmitted,
  JobDone,
  JobEnd,
  JobEvent,
  JobFailed,
  JobRequest,
  Message,
  OptionalWish,
  ThoughtEnd,
  ToolForms,
  WaitReason,
} from '../../shared/job.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import type { BodyMemory } from '../http/body-memory.js';
import { EventStream, type StreamManner } from '../http/event-stream.js';
import type { Primary, Reply } from '../http/exchange.js';
import { onceFor, publicCodeOf, type SentBody, sendBody, untilGone } from '../http/responses.js';
import { type AnswerPart, cutsIn, partsIn, slicesOf } from './answer-parts.js';
import { AnswerText, type SpillFolder } from './answer-text.js';
import { JobReport } from './job-report.js';
import { inWordsOf, noteDroppedTools, type ParsedRequest, requestOf, setIgnored } from './job-request.js';
import { type WrittenCall, writtenCall } from './tool-offer.js';

/** Why an answer has ended: it was whole, a stop sequence came, it calls tools, it is as long as it may be, or the model refuses. */
export type Ending = 'whole' | 'stop-sequence' | 'tool-call' | 'length' | 'refusal';

/** An answer, as a format writes it. */
export interface CompletedAnswer {
  readonly requestId: string;
  /** The one that has answered, as far as it is known; else as the caller named it. */
  readonly model: string;
  /** How calls of some tools are written. */
  readonly forms: ToolForms;
  /** Whether the model could call tools. */
  readonly hasTools: boolean;
  /** Whether its caller gets what the model thinks. */
  readonly hasThoughts: boolean;
  /** The calls that the client is to answer. */
  readonly calls: readonly WrittenCall[];
  /** What the model has written, in its order: a text is among it, if there is any, and if there is nothing else. */
  readonly parts: readonly AnswerPart[];
  /** Stands for the text, which may be long: only for JSON strings. */
  readonly text: string;
  /** Whether there is any. */
  readonly hasText: boolean;
  /** Of a job with a schema: stands for the value that the text is. */
  readonly value: string | undefined;
  readonly ending: Ending;
  readonly stopSequence: string | null;
  readonly usage: TokenUsage;
  readonly end: JobDone;
}

/** Tokens: as the model CLI reports them, else as the tokenizer counts them. */
export interface TokenUsage {
  /** All of the input, what was cached included. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** An answer before its end is sent. */
export interface UnsentAnswer {
  /** As the next request has it in its history. */
  message(): Promise<Message>;
  /** As a plain answer has it. */
  body(): Promise<string>;
}

/** What is known when a stream begins. */
export type Opening = Pick<CompletedAnswer, 'requestId' | 'model' | 'forms' | 'hasTools' | 'hasThoughts'>;

/** How an API writes a streamed answer: server-sent events, or lines of JSON. An empty text sends nothing. */
export interface StreamFormat {
  begin(): string;
  queued(position: number, reason: WaitReason): string;
  started(queueMs: number): string;
  delta(text: string): string;
  /** Sent in a silence; a comment where this is left out. */
  ping?(): string;
  /** A call begins. The input of a custom tool comes whole. */
  callStart(call: Pick<WrittenCall, 'id' | 'name' | 'namespace' | 'isCustom'>): string;
  callDelta(text: string): string;
  /** Left out where the API has no form for thoughts. */
  thoughtDelta?(text: string): string;
  /** Comes for each thought, also for one without text. */
  thoughtEnd?(thought: Pick<ThoughtEnd, 'signature' | 'redacted'>): string;
  /** May repeat the whole text, in JSON strings. */
  end(answer: CompletedAnswer): string;
  failure(error: RelayError): string;
}

/** How an API writes answers. */
export interface AnswerFormat {
  /** Where SDKs read it, a failure says whether to try again. */
  readonly isForSdks: boolean;
  /** A refusal by the model is an answer; else it is an error. */
  readonly showsRefusals?: true;
  /** Left out: server-sent events. */
  readonly manner?: StreamManner;
  body(answer: CompletedAnswer): object;
  stream(opening: Opening): StreamFormat;
}

/** What the streams for SDKs have in common: they know no events of the queue, but skip comments. */
export abstract class SdkStream {
  queued(position: number): string {
    return `: queued ${position}\n\n`;
  }

  started(_queueMs: number): string {
    return '';
  }
}

/** An API's first event names the model, so it waits for the first event that comes from the model. */
function comesBeforeAnswer({ type }: JobEvent): boolean {
  return type === 'job-admitted' || type === 'job-queued' || type === 'job-start' || type === 'job-end';
}

/** What an event says in this format, but for the beginning and the end of the job. */
export function eventIn(format: StreamFormat, event: JobEvent, forms: ToolForms = {}): string {
  switch (event.type) {
    case 'job-admitted':
    case 'job-model':
      return ''; // the beginning waits until the model answers
    case 'job-queued':
      return format.queued(event.position, event.reason);
    case 'job-start':
      return format.started(event.queueMs);
    case 'text-delta':
      return format.delta(event.text);
    case 'call-start':
      return format.callStart(writtenCall({ ...event, input: '' }, forms));
    case 'call-delta':
      return format.callDelta(event.text);
    case 'thought-delta':
      return format.thoughtDelta?.(event.text) ?? '';
    case 'thought-end':
      return format.thoughtEnd?.(event) ?? '';
    case 'job-end':
      return '';
  }
}

/** An answer whose end is known. */
export function completed(
  opening: Opening,
  {
    slices,
    ...answer
  }: Pick<CompletedAnswer, 'text' | 'hasText' | 'value' | 'end'> & {
    /** Of the text, as the thoughts cut it. */
    readonly slices: readonly string[];
  },
): CompletedAnswer {
  const { end, hasText } = answer;
  const { stopSequence } = end;
  const calls = (end.calls ?? []).map((call) => writtenCall(call, opening.forms));
  const model = end.model ?? opening.model;
  const parts = partsIn(end.thoughts ?? [], hasText || calls.length === 0 ? slices : [], calls);
  return { ...opening, ...answer, model, parts, calls, ending: endingOf(end), stopSequence, usage: tokensOf(end) };
}

function endingOf({ calls = [], isCutShort, stopSequence, refusal }: JobDone): Ending {
  if (refusal !== undefined) return 'refusal';
  if (isCutShort === true) return 'length';
  if (calls.length > 0) return 'tool-call';
  return stopSequence === null ? 'whole' : 'stop-sequence';
}

function tokensOf({ usage, estimate }: JobDone): TokenUsage {
  return {
    input: usage.inputTokens ?? estimate?.inputTokens ?? 0,
    output: usage.outputTokens ?? estimate?.outputTokens ?? 0,
    cacheRead: usage.cacheReadTokens ?? 0,
    cacheWrite: usage.cacheWriteTokens ?? 0,
  };
}

const unknown = { inputTokens: null, outputTokens: null, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null };

/** The end of an answer that the model refuses; null for another failure. */
export function refusedEnd({ failure, answer, outcome: _, ...end }: JobFailed): JobDone | null {
  if (failure.reason !== 'refused') return null;
  const nothing = { model: null, usage: unknown, refusal: { category: null, explanation: null } };
  const plain = { outcome: 'ok', text: null, estimate: null, stopSequence: null, conversation: null } as const;
  return { ...end, ...plain, ...nothing, ...answer };
}

/** What the routes of jobs work with. */
export interface JobParts {
  readonly primary: Primary;
  readonly bodies: BodyMemory;
  readonly spill: Pick<SpillFolder, 'file'>;
  readonly clock: Clock;
}

/**
 * Has the primary run the job for as long as the client stays, and answers in this format. A request with a key that has
 * its answer already gets that, and runs nothing. Throws what can still be sent as an error body. `whenWhole` is awaited
 * before the end of the answer is sent.
 */
export async function answerWithJob(
  parts: Omit<JobParts, 'bodies'>,
  res: Reply,
  parsed: ParsedRequest,
  format: AnswerFormat,
  whenWhole: (answer: UnsentAnswer, request: JobRequest) => Promise<void> = async () => {},
): Promise<void> {
  using client = untilGone(res);
  noteDroppedTools(parts.primary, res, parsed);
  const request = await requestOf(parsed.job, parts.primary, res);
  await onceFor(res, parsed.job.stream ? 'stream' : 'plain', async () => {
    await using text = new AnswerText(parts.spill);
    const report = new JobReport(parts.clock);
    res.locals.job = report;
    const events = report.following(parts.primary.stream('run', request, client.signal));
    const whole = (answer: UnsentAnswer) => whenWhole(answer, request);
    const writer = new AnswerWriter(res, parsed, format, text, client.signal, whole);
    try {
      if (parsed.job.stream) await writer.stream(events, parts.clock);
      else await writer.plain(events);
    } catch (error) {
      if (!report.wasAdmitted && !isCancelled(error)) res.locals.job = null; // refused: there never was a job
      if (format.isForSdks && report.hasStarted && !res.headersSent) res.set('x-should-retry', 'false'); // the model is paid already
      throw error;
    }
  });
}

/** Owns how far the answer to one request is written. */
class AnswerWriter {
  readonly #res: Reply;
  readonly #parsed: ParsedRequest;
  readonly #format: AnswerFormat;
  readonly #text: AnswerText;
  readonly #signal: AbortSignal;
  #admission: JobAdmitted | null = null;
  /** The model that answers, once its CLI has reported it. */
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
   * The stream begins when the job is admitted: a failure before that is an ordinary error body, and one after it an event,
   * where no SDK sends the request again.
   */
  async stream(events: AsyncIterable<JobEvent>, clock: Clock): Promise<void> {
    let format = this.#format.stream(this.#opening);
    let hasBegun = false;
    const begin = () => {
      if (hasBegun) return '';
      hasBegun = true;
      format = this.#format.stream(this.#opening); // the model is known now, as far as its CLI reports it before its end
      return format.begin();
    };
    using out = new EventStream(this.#res, clock, format.ping && (() => format.ping?.() ?? ''), this.#format.manner);
    try {
      const end = await this.#endOf(events, async (event) => {
        if (event.type === 'job-admitted') {
          this.#nameConversation(event.conversationId);
          out.begin();
        }
        if (event.type === 'job-model') this.#model = event.model;
        const start = comesBeforeAnswer(event) ? '' : begin();
        await out.write(start + eventIn(format, event, this.#parsed.forms), this.#signal);
      });
      this.#model ??= end.model;
      const start = begin();
      await out.writeLast(
        this.#bodyOf(end, (answer) => start + format.end(answer)),
        this.#signal,
      );
    } catch (error) {
      await this.#failInside(out, () => begin() + format.failure(toRelayError(error)), error);
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
    throw error; // a defect of ours: it belongs in the log, too
  }

  /** Rejects with why there is no answer. */
  async #endOf(events: AsyncIterable<JobEvent>, take: (event: JobEvent) => Promise<void>): Promise<JobDone> {
    try {
      const end = await follow(events, async (event) => {
        if (event.type === 'job-admitted') this.#admit(event);
        await take(event);
        if (event.type === 'text-delta') await this.#text.add(event.text);
      });
      if (end === null) throw new Error('a job ended without an end');
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
  }

  /** `refused`: wishes that the model has refused since. */
  #setIgnored(refused: readonly OptionalWish[] = []): void {
    const { ignored, effortField, wishFields } = this.#parsed;
    const { ignoresEffort = false, ignores = [] } = this.#admission ?? {};
    const ofWishes = [...new Set([...ignores, ...refused])].flatMap((wish) => wishFields[wish] ?? []);
    const ofEffort = ignoresEffort && effortField !== null ? [effortField] : [];
    setIgnored(this.#res, [...ignored, ...ofEffort, ...ofWishes]);
  }

  /** A front that can't read the body sends the next turn to where the process of the conversation is. */
  #nameConversation(id: string | undefined): void {
    if (id !== undefined) this.#res.set('X-Conversation-Id', id);
  }

  get #opening(): Opening {
    const { model, forms, job } = this.#parsed;
    const { requestId } = this.#res.locals;
    const [hasTools, hasThoughts] = [job.offer !== undefined, job.thinking !== undefined];
    return { requestId, model: this.#model ?? this.#admission?.model ?? model, forms, hasTools, hasThoughts };
  }

  #bodyOf(end: JobDone, write: (answer: ReturnType<typeof completed>) => string): SentBody {
    const form = { isStructured: this.#parsed.job.schema !== undefined, cuts: cutsIn(end) };
    return this.#text.body(form, (text, value, slices) => write(this.#completed(text, value, slices, end)));
  }
}

/** A caller whose job was ended through the API is still there. SDKs do not send a request with this answer again. */
export function failureOf({ failure }: JobFailed): RelayError {
  const isEnded = failure.cancelledBy !== undefined;
  return isEnded ? new RelayError('forbidden', failure.message) : fromWire(failure);
}

/**
 * Hands each event of a job to `take` as it comes, for the client of a request or for a reader of a background job. Returns
 * the end; null if the events stop before it.
 */
export async function follow(
  events: AsyncIterable<JobEvent>,
  take: (event: JobEvent) => Promise<void>,
): Promise<JobEnd | null> {
  for await (const event of events) {
    if (event.type === 'job-end') return event;
    await take(event);
  }
  return null;
}
