import type { Clock } from '../../shared/clock.js';
import { fromWire, isCancelled } from '../../shared/errors.js';
import type { JobAdmitted, JobDone, JobEvent, JobRequest } from '../../shared/job.js';
import { AnswerBody, onOneLine } from '../answer/answer-body.js';
import { AnswerText } from '../answer/answer-text.js';
import type { SpillFolder } from '../answer/spill-folder.js';
import type { BodyMemory } from '../http/body-memory.js';
import { untilGone } from '../http/disconnect.js';
import type { Primary, Reply } from '../http/exchange.js';
import { onlyOnce } from '../idempotency/only-once.js';
import { JobReport } from '../job-report.js';
import { type JobOrder, requestOf } from './job-order.js';

/** What the routes of jobs work with. */
export interface JobParts {
  readonly primary: Primary;
  readonly bodies: BodyMemory;
  readonly spill: Pick<SpillFolder, 'file'>;
  readonly clock: Clock;
}

export interface Answer {
  /** Stands for the text of the answer. */
  readonly text: string;
  /** Of a job with a schema: stands for the value that the text is. */
  readonly value: string | undefined;
  readonly end: JobDone;
}

/** A job while its client waits for it. */
export interface RunningJob {
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** What the first event told; null before it. */
  readonly admission: JobAdmitted | null;
  /** Whether the model was asked already: then nobody should send the request again by himself. */
  readonly hasStarted: boolean;
  /** Takes all events, each to `onEvent` first, and returns the end. Rejects with why there is no answer. */
  collect(onEvent?: (event: JobEvent) => Promise<void>): Promise<JobDone>;
  /** What is sent of the answer, however long that is. `write` writes it out for any text, which may stand in JSON strings only. */
  written(end: JobDone, write: (answer: Answer) => string): AnswerBody;
}

/**
 * Has the primary run the job for as long as the client stays, while `answer` tells the client of it. A request with a key
 * that has its answer already gets that, and runs nothing.
 */
export async function runJob(
  parts: Omit<JobParts, 'bodies'>,
  res: Reply,
  order: JobOrder,
  answer: (job: RunningJob) => Promise<void>,
): Promise<void> {
  using client = untilGone(res);
  const request = await requestOf(order, parts.primary, res);
  const run = () => runRequest(parts, res, request, client.signal, answer);
  await onlyOnce(parts.primary, res, order.stream ? 'stream' : 'plain', run);
}

async function runRequest(
  { primary, spill, clock }: Omit<JobParts, 'bodies'>,
  res: Reply,
  request: JobRequest,
  signal: AbortSignal,
  answer: (job: RunningJob) => Promise<void>,
): Promise<void> {
  await using text = new AnswerText(spill);
  const report = new JobReport(clock);
  const events = reported(primary.stream('run', request, signal), report);
  res.locals.job = report;
  try {
    await answer(new OpenJob(events, text, report, signal, request.schema !== null));
  } catch (error) {
    if (!report.wasAdmitted && !isCancelled(error)) res.locals.job = null; // refused: there never was a job
    throw error;
  }
}

/** Takes the last step in advance: a client that leaves after the job's end has not cancelled it. */
async function* reported(events: AsyncGenerator<JobEvent>, report: JobReport): AsyncGenerator<JobEvent> {
  let hasEnded = false;
  try {
    for (let step = await events.next(); step.done !== true; step = await events.next()) {
      report.follow(step.value);
      hasEnded = step.value.type === 'job-end';
      if (hasEnded) events.next().catch(() => {});
      yield step.value;
    }
  } finally {
    if (!hasEnded) await events.return(undefined);
  }
}

/** Owns what a worker holds of one job. */
class OpenJob implements RunningJob {
  readonly signal: AbortSignal;
  admission: JobAdmitted | null = null;
  readonly #events: AsyncIterable<JobEvent>;
  readonly #text: AnswerText;
  readonly #report: JobReport;
  /** A value is held as it is, too: a body may hold it as JSON. */
  readonly #value: string[] | null;

  constructor(
    events: AsyncIterable<JobEvent>,
    text: AnswerText,
    report: JobReport,
    signal: AbortSignal,
    hasSchema: boolean,
  ) {
    this.#events = events;
    this.#text = text;
    this.#report = report;
    this.signal = signal;
    this.#value = hasSchema ? [] : null;
  }

  get hasStarted(): boolean {
    return this.#report.hasStarted;
  }

  async collect(onEvent: (event: JobEvent) => Promise<void> = async () => {}): Promise<JobDone> {
    for await (const event of this.#events) {
      if (event.type === 'job-admitted') this.admission = event;
      await onEvent(event);
      if (event.type === 'text-delta') await this.#text.add(event.text);
      if (event.type === 'text-delta') this.#value?.push(event.text);
      if (event.type !== 'job-end') continue;
      if (event.outcome !== 'ok') throw fromWire(event.failure);
      if (event.text !== null) await this.#text.replace(event.text);
      return event;
    }
    throw new Error('a job ended without an end');
  }

  written(end: JobDone, write: (answer: Answer) => string): AnswerBody {
    const json = onOneLine(this.#value?.join('') ?? '');
    const hasValue = json !== ''; // a model that refuses gives none
    const value = {
      short: json,
      bytes: Buffer.byteLength(json),
      pieces: async function* () {
        yield json;
      },
    };
    return new AnswerBody((text, mark) => write({ text, value: hasValue ? mark : undefined, end }), this.#text, value);
  }
}
