import { isCancelled, RelayError, toRelayError } from '../../shared/errors.js';
import { type JobDone, type JobEvent, unknownJobUsage } from '../../shared/job.js';
import type { AnswerBody } from '../answer/answer-body.js';
import { EventStream } from '../http/event-stream.js';
import type { Reply } from '../http/exchange.js';
import { publicCodeOf, sendBody } from '../http/send-json.js';
import type { JobOrder } from '../jobs/job-order.js';
import { type Answer, type JobParts, type RunningJob, runJob } from '../jobs/running-job.js';
import { type FailureWords, inWordsOf } from './failures.js';
import { noteIgnoredTools, tellIgnored } from './ignored.js';

/** A job for a door: of operation `ask`, with the conversation that the caller keeps. */
export type DoorOrder = Omit<JobOrder, 'operation' | 'conversationId' | 'isEffortNeeded'>;

/** What a foreign request asks for. */
export interface Asked extends FailureWords {
  readonly order: DoorOrder;
  /** The model by the name that the caller gave it. */
  readonly model: string;
  /** The function that the answer is to be a call of. */
  readonly tool: string | null;
  /** Fields that mean nothing here. */
  readonly ignored: readonly string[];
  /** The field of the effort; null where there is none. */
  readonly effortField: string | null;
}

/** Tokens: as the model CLI reports them, else as the tokenizer counts them. */
export interface DoorUsage {
  /** All of the input, what was cached included. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** An answer as a door tells it. */
export interface Told {
  readonly requestId: string;
  readonly model: string;
  /** Stands for the text, which may be long: only for JSON strings. */
  readonly text: string;
  /** Of structured output: stands for the value. */
  readonly value: string | undefined;
  readonly tool: string | null;
  readonly ending: Ending;
  readonly stopSequence: string | null;
  readonly usage: DoorUsage;
}

/** Why an answer has ended: it was whole, a stop sequence came, it is a call of a function, or the model refuses. */
export type Ending = 'whole' | 'stop-sequence' | 'tool-call' | 'refusal';

/** What is known when a stream begins. */
export type Opening = Pick<Told, 'requestId' | 'model' | 'tool'>;

/** How a dialect tells a streamed answer: server-sent events, written out. */
export interface StreamForm {
  begin(): string;
  delta(text: string): string;
  /** May repeat the whole text, in JSON strings. */
  end(told: Told): string;
  failure(error: RelayError): string;
}

/** How a dialect tells answers. */
export interface AnswerForm {
  body(told: Told): object;
  stream(opening: Opening): StreamForm;
}

export type DoorParts = Omit<JobParts, 'bodies'>;

/** Has the job run, and tells its answer in the form of a dialect. Throws what can still be sent as an error body. */
export async function answerThroughDoor(parts: DoorParts, res: Reply, asked: Asked, form: AnswerForm): Promise<void> {
  const order = orderOf(asked);
  noteIgnoredTools(parts.primary, res, asked.ignored);
  await runJob(parts, res, order, async (job) => {
    const telling = new Telling(job, asked, res);
    try {
      if (order.stream) await stream(telling, form, new EventStream(res, parts.clock));
      else await sendBody(res, await plain(telling, form), job.signal);
    } catch (error) {
      if (job.hasStarted && !res.headersSent) res.set('x-should-retry', 'false'); // the model was asked, and paid, already
      throw error;
    }
  });
}

async function plain(telling: Telling, form: AnswerForm): Promise<AnswerBody> {
  const end = await telling.collect(async () => {});
  return telling.job.written(end, (answer) => JSON.stringify(form.body(telling.told(answer))));
}

/** Effort that the model CLI does not know is ignored, and told so. */
export function orderOf({ order }: Asked): JobOrder {
  return { operation: 'ask', ...order, isEffortNeeded: false };
}

/** The stream begins when the job is admitted: what fails later fails inside it, where no SDK sends the request again. */
async function stream(telling: Telling, form: AnswerForm, out: EventStream): Promise<void> {
  using _pings = out;
  const { job, res } = telling;
  const { signal } = job;
  let events = form.stream(telling.opening);
  const onEvent = async (event: JobEvent) => {
    if (event.type === 'job-admitted') events = form.stream(telling.opening); // the model is known now
    if (event.type === 'job-admitted') await out.write(events.begin(), signal);
    if (event.type === 'job-queued') await out.write(`: queued ${event.position}\n\n`, signal);
    if (event.type === 'text-delta') await out.write(events.delta(event.text), signal);
  };
  try {
    const end = await telling.collect(onEvent);
    await out.writeLast(
      job.written(end, (answer) => events.end(telling.told(answer))),
      signal,
    );
  } catch (error) {
    if (isCancelled(error) || !res.headersSent) throw error;
    const failure = toRelayError(error);
    res.locals.error = publicCodeOf(failure);
    await out.writeFailure(events.failure(failure), failure, signal);
    out.end();
    if (error !== failure) throw error; // a defect of ours: it belongs in the log, too
  }
  out.end();
}

/** What one answer is told with. */
class Telling {
  readonly job: RunningJob;
  readonly res: Reply;
  readonly #asked: Asked;
  #isRefusal = false;

  constructor(job: RunningJob, asked: Asked, res: Reply) {
    this.job = job;
    this.#asked = asked;
    this.res = res;
  }

  get opening(): Opening {
    const { model, tool } = this.#asked;
    return { requestId: this.res.locals.requestId, model: this.job.admission?.model ?? model, tool };
  }

  /** As `RunningJob.collect`; that the model refuses is an answer here. */
  async collect(onEvent: (event: JobEvent) => Promise<void>): Promise<JobDone> {
    try {
      return await this.job.collect(async (event) => {
        if (event.type === 'job-admitted') this.#setHeaders();
        await onEvent(event);
      });
    } catch (error) {
      if (!(error instanceof RelayError) || error.reason !== 'refused') throw inWordsOf(this.#asked, error);
      this.#isRefusal = true;
      return refusedAnswer;
    }
  }

  told(answer: Answer): Told {
    const told = toldOf(answer, this.opening);
    return this.#isRefusal ? { ...told, ending: 'refusal' } : told;
  }

  #setHeaders(): void {
    const { session = null, ignoresEffort = false } = this.job.admission ?? {};
    const { ignored, effortField } = this.#asked;
    const all = ignoresEffort && effortField !== null ? [...ignored, effortField] : ignored;
    tellIgnored(this.res, all);
    if (session !== null) this.res.set('X-Session', session);
  }
}

/** An answer in the words of the doors. */
export function toldOf({ text, value, end }: Answer, { requestId, model, tool }: Opening): Told {
  const { stopSequence } = end;
  const whole = stopSequence === null ? 'whole' : 'stop-sequence';
  const ending = tool === null ? whole : 'tool-call';
  return { requestId, model: end.model ?? model, tool, text, value, ending, stopSequence, usage: usageOf(end) };
}

const unknown = { inputTokens: null, outputTokens: null, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null };

const refusedAnswer: JobDone = {
  type: 'job-end',
  outcome: 'ok',
  text: null,
  model: null,
  usage: unknown,
  estimate: null,
  stopSequence: null,
  conversation: null,
  queueMs: 0,
  executionMs: 0,
  ...unknownJobUsage,
};

function usageOf({ usage, estimate }: JobDone): DoorUsage {
  return {
    input: usage.inputTokens ?? estimate?.inputTokens ?? 0,
    output: usage.outputTokens ?? estimate?.outputTokens ?? 0,
    cacheRead: usage.cacheReadTokens ?? 0,
    cacheWrite: usage.cacheWriteTokens ?? 0,
  };
}
