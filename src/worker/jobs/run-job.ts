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

/**
 * Names of the ends of an answer in each API: `whole` is a regular end; `length` means that the answer reached the
 * maximum. OpenAI's Responses API gives a reason only for incomplete answers.
 */
export const finishReasons = {
  whole: { chat: 'stop', responses: null, messages: 'end_turn', ollama: 'stop' },
  'stop-sequence': { chat: 'stop', responses: null, messages: 'stop_sequence', ollama: 'stop' },
  'tool-call': { chat: 'tool_calls', responses: null, messages: 'tool_use', ollama: 'stop' },
  length: { chat: 'length', responses: 'max_output_tokens', messages: 'max_tokens', ollama: 'length' },
  refusal: { chat: 'content_filter', responses: 'content_filter', messages: 'refusal', ollama: 'refusal' },
} as const;

export type Ending = keyof typeof finishReasons;

/** Finished answer, as an API format gets it. */
export interface CompletedAnswer {
  readonly requestId: string;
  /** Model that answered, if its CLI has reported it; else the name that the client sent. */
  readonly model: string;
  /** How the calls of some tools are written. */
  readonly forms: ToolForms;
  /** Whether the request offered tools. */
  readonly hasTools: boolean;
  /** Whether the client gets the model's thoughts. */
  readonly hasThoughts: boolean;
  /** Calls that the client must answer. */
  readonly calls: readonly WrittenCall[];
  /** Output of the model, in order. A text is included if it is not empty, or if there are no calls. */
  readonly parts: readonly AnswerPart[];
  /** Text of the answer, or a placeholder for it: use it only inside JSON strings. */
  readonly text: string;
  /** Whether the text is not empty. */
  readonly hasText: boolean;
  /** Placeholder for the JSON value of a structured answer. */
  readonly value: string | undefined;
  readonly ending: Ending;
  readonly stopSequence: string | null;
  readonly usage: TokenUsage;
  readonly end: JobDone;
}

/** Token counts from the model CLI, else from the service's tokenizer. */
export interface TokenUsage {
  /** All input tokens, including cached ones. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** Finished answer whose end the client does not have yet. */
export interface UnsentAnswer {
  /** Returns the answer as the history of the next request will contain it. */
  message(): Promise<Message>;
  /** Returns the JSON body of the answer without streaming. */
  body(): Promise<string>;
}

/** Data that is available when a stream begins. */
export type Opening = Pick<CompletedAnswer, 'requestId' | 'model' | 'forms' | 'hasTools' | 'hasThoughts'>;

/** Stream of one answer in the form of an API: server-sent events, or JSON lines. An empty string sends nothing. */
export interface StreamFormat {
  begin(): string;
  queued(position: number, reason: WaitReason): string;
  started(queueMs: number): string;
  delta(text: string): string;
  /** Text to send while the stream is silent; a comment by default. */
  ping?(): string;
  /** Begins a call. The input of a custom tool arrives in one delta. */
  callStart(call: Pick<WrittenCall, 'id' | 'name' | 'namespace' | 'isCustom'>): string;
  callDelta(text: string): string;
  /** Formats a piece of a thought. Left out if the API has no form for thoughts. */
  thoughtDelta?(text: string): string;
  /** Called for each thought, also without text. */
  thoughtEnd?(thought: Pick<ThoughtEnd, 'signature' | 'redacted'>): string;
  /** Formats the end of the answer, which may repeat the whole text inside JSON strings. */
  end(answer: CompletedAnswer): string;
  failure(error: RelayError): string;
}

/** Form of an API's answers. */
export interface AnswerFormat {
  /** Whether SDKs read the answer. A failure after the start of the job then has the header `x-should-retry: false`. */
  readonly isForSdks: boolean;
  /** Whether the model's refusal is an answer; otherwise it is an error. */
  readonly showsRefusals?: true;
  /** Default: server-sent events. */
  readonly manner?: StreamManner;
  body(answer: CompletedAnswer): object;
  stream(opening: Opening): StreamFormat;
}

/** Base of streams for SDKs, which skip comments and know no events of the queue. */
export abstract class SdkStream {
  queued(position: number): string {
    return `: queued ${position}\n\n`;
  }

  started(_queueMs: number): string {
    return '';
  }
}

/**
 * Whether the event precedes the model's output. The first event of an API names the model, and is delayed until then.
 */
function comesBeforeAnswer({ type }: JobEvent): boolean {
  return type === 'job-admitted' || type === 'job-queued' || type === 'job-start' || type === 'job-end';
}

/** Writes an event of a job in this format, except the beginning and the end of the answer. */
export function eventIn(format: StreamFormat, event: JobEvent, forms: ToolForms = {}): string {
  switch (event.type) {
    case 'job-admitted':
    case 'job-model':
      return ''; // `begin` writes the beginning
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

/** Builds an answer whose end is known. */
export function completed(
  opening: Opening,
  {
    slices,
    ...answer
  }: Pick<CompletedAnswer, 'text' | 'hasText' | 'value' | 'end'> & {
    /** Text of the answer, split at the thoughts. */
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

/** Returns the end of an answer that the model refused, or null for any other failure. */
export function refusedEnd({ failure, answer, outcome: _, ...end }: JobFailed): JobDone | null {
  if (failure.reason !== 'refused') return null;
  const nothing = { model: null, usage: unknown, refusal: { category: null, explanation: null } };
  const plain = { outcome: 'ok', text: null, estimate: null, stopSequence: null, conversation: null } as const;
  return { ...end, ...plain, ...nothing, ...answer };
}

/** Dependencies of the routes that run jobs. */
export interface JobParts {
  readonly primary: Primary;
  readonly bodies: BodyMemory;
  readonly spill: Pick<SpillFolder, 'file'>;
  readonly clock: Clock;
}

/**
 * Has the primary run the job until it ends or the client disconnects, and answers in this format. A repeated
 * `Idempotency-Key` gets the recorded answer, and no job runs. Throws if an error body can still be sent, if the client
 * disconnects, and for defects. `whenWhole` is awaited before the end of the answer is sent.
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
      if (!report.wasAdmitted && !isCancelled(error)) res.locals.job = null; // the job was refused
      // The client has already paid for a job that has started: a retry by its SDK would cost the same again.
      if (format.isForSdks && report.hasStarted && !res.headersSent) res.set('x-should-retry', 'false');
      throw error;
    }
  });
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
    throw error; // a defect of this service, which must also be logged
  }

  /** Waits for the end of the job. Rejects with the error of a job without an answer. */
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
    const [hasTools, hasThoughts] = [job.offer !== undefined, job.thinking !== undefined];
    return { requestId, model: this.#model ?? this.#admission?.model ?? model, forms, hasTools, hasThoughts };
  }

  #bodyOf(end: JobDone, write: (answer: ReturnType<typeof completed>) => string): SentBody {
    const form = { isStructured: this.#parsed.job.schema !== undefined, cuts: cutsIn(end) };
    return this.#text.body(form, (text, value, slices) => write(this.#completed(text, value, slices, end)));
  }
}

/**
 * Returns the error for the client. A job that was cancelled through the API ends with `forbidden`: its client is still
 * connected, and SDKs do not repeat a request after this code.
 */
export function failureOf({ failure }: JobFailed): RelayError {
  const isEnded = failure.cancelledBy !== undefined;
  return isEnded ? new RelayError('forbidden', failure.message) : fromWire(failure);
}

/**
 * Passes each event of a job to `take`, for the client of a request or a reader of a background job. Returns the end,
 * or null if the events stop without one.
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
