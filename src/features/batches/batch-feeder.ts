import type { JobView } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { AnswerOf, RequestOf } from '../../shared/ipc/peer.js';
import type { JobEnd } from '../../shared/job.js';
import { filledFrame } from '../../shared/text/answer-frame.js';
import { newJobId, type UnstoredAnswer } from '../background/background-jobs.js';
import {
  type Appended,
  type BatchApi,
  type BatchState,
  type FileStore,
  isOpenBatch,
  type LineCounts,
  type SentLine,
  type StoredBatch,
} from '../stores/contract/files.js';
import { LineReader } from './line-reader.js';
import { LineSender } from './line-sender.js';
import type { workerCalls } from './shared.js';
import { TakenAnswers } from './taken-answers.js';
import type { EndCause, FileLine, LineOutcome, LineResult } from './views.js';

/** Interval at which jobs of other hosts, and lines that could not be sent, are checked. */
const checkMs = 500;
/** Number of jobs of one line after whose loss the line fails: it may be the line that ends the service. */
const maxTries = 3;
/** Results of lines without a job that are written at once. */
const endedAtOnce = 100;
/** Bytes of the file that one step reads, and of results that are written at once, apart from the last one. */
const bytesAtOnce = 4 * 1024 * 1024;
/** Ended lines whose results are requested at once. */
const finishedAtOnce = 8;

/** Calls to a worker about lines. */
export type LineWorker = {
  readonly [K in keyof typeof workerCalls]: (
    order: RequestOf<typeof workerCalls, K>,
  ) => Promise<AnswerOf<typeof workerCalls, K>>;
};

/** Job of a line that has ended. */
export interface EndedLine {
  readonly job: JobView;
  readonly end: JobEnd;
  /** Reads the text of the answer. */
  text(): Promise<string>;
}

/** Background jobs as a batch needs them. */
export interface LineJobs {
  /** Finds a job that has ended; null if the job is open. Resolves with `missing` if there is no such job. */
  findEndedLine(id: string, client: ClientText): Promise<EndedLine | null | 'missing'>;
  cancelJob(id: string, client: ClientText): Promise<void>;
  removeJob(id: string): Promise<void>;
}

export interface RunParts {
  readonly store: FileStore;
  readonly jobs: LineJobs;
  /** Returns a worker that listens; null if no worker listens at the moment. */
  readonly worker: () => LineWorker | null;
  readonly clock: Clock;
  /** Most lines of one batch with an open job. */
  readonly maxOpen: number;
  /** Makes calls for long lines of all batches in turn, so that workers hold few of them. */
  readonly inTurn: <T>(call: () => Promise<T>) => Promise<T>;
  /** Whether this host may still run its batches. After a pause of the process, another host may run them. */
  readonly isLeased: () => boolean;
  /** Whether the files of a client have room for further results. */
  readonly hasRoom: (client: ClientText) => Promise<boolean>;
  readonly lineEnded: (api: BatchApi, outcome: LineOutcome) => void;
  /** Called with an error after which the run tries again. Reports a defect. */
  readonly onFailure: (error: unknown) => void;
}

/** Changes of one step, which count when the store has them. */
interface Step {
  readonly ended: ReadonlyMap<SentLine, LineResult>;
  readonly repeated: ReadonlyMap<SentLine, SentLine>;
  readonly added: readonly SentLine[];
  readonly endedUnsent: readonly LineResult[];
  readonly cursor: number;
  readonly isAtEnd: boolean;
}

/**
 * Runs one batch: has at most `maxOpen` background jobs for its lines, and stores each result together with the
 * position in the file. Only the stored progress counts; after an error, a new run begins with it.
 */
export class BatchFeeder {
  readonly batch: StoredBatch;
  readonly #parts: RunParts;
  readonly #reader: LineReader;
  #progress: BatchState;
  #cancelAt: number | null;
  readonly #sender: LineSender;
  readonly #taken = new TakenAnswers();
  #removing: Promise<void> = Promise.resolve();
  #isStopped = false;
  #hasNews = false;
  #wakeUp: () => void = () => {};

  constructor(batch: StoredBatch, parts: RunParts) {
    this.batch = batch;
    this.#parts = parts;
    this.#progress = batch.progress;
    this.#cancelAt = batch.cancelAt;
    this.#sender = new LineSender(batch, parts, () => this.wake());
    this.#reader = this.#readerAt(batch.progress.cursor);
  }

  /** Sends no more lines, and stores no more progress: the jobs go on without the run. */
  stopFeeding(): void {
    this.#isStopped = true;
    this.#sender.stopSending();
    this.wake();
  }

  /** Makes the run look for ended jobs now. */
  wake(): void {
    this.#hasNews = true;
    this.#wakeUp();
  }

  /** Whether this run sends the line of this job at the moment, and no other host may send it. */
  isSending(jobId: string): boolean {
    return this.#mayRun && this.#sender.isSending(jobId);
  }

  /** Resolves with whether the answer is stored as the result of its line, and its job is removed. */
  async takeAnswer(answer: UnstoredAnswer): Promise<boolean> {
    const isOpen = this.#progress.open.some(({ jobId }) => jobId === answer.job.id);
    if (!isOpen || !this.#mayRun) return false;
    const isStored = this.#taken.take(answer);
    this.wake();
    return isStored;
  }

  cancel(at: number): void {
    this.#cancelAt ??= at;
    this.#sender.stopSending();
    this.wake();
  }

  /** Resolves when the batch has ended, when this host has lost it, or after `stopFeeding`. Rejects if the store fails. */
  async runBatch(): Promise<void> {
    try {
      this.#removing = this.#removeJobs(this.#progress.endedJobs ?? []); // the last run may have died before
      while (this.#mayRun && isOpenBatch({ progress: this.#progress })) {
        this.#hasNews = false;
        if (!(await this.#step())) return;
        if (this.#sender.hasUnsent) this.#send(await this.#parts.hasRoom(this.batch.client));
        if (isOpenBatch({ progress: this.#progress })) await this.#pause();
      }
    } finally {
      // Otherwise the next run might send the same lines.
      await Promise.all([this.#removing, this.#sender.untilIdle()]);
      this.#taken.returnAnswers();
    }
  }

  get #mayRun(): boolean {
    return !this.#isStopped && this.#parts.isLeased();
  }

  async #pause(): Promise<void> {
    if (this.#hasNews || this.#isStopped) return;
    await new Promise<void>((resolve) => {
      const stopTimer = this.#parts.clock.after(checkMs, resolve);
      this.#wakeUp = () => {
        stopTimer();
        resolve();
      };
    });
  }

  get #cause(): EndCause | null {
    if (this.#cancelAt !== null) return 'canceled';
    return this.#parts.clock.now() >= this.batch.expiresAt ? 'expired' : null;
  }

  /** Collects results, reads further lines, and stores both. Resolves with false if the batch is lost. */
  async #step(): Promise<boolean> {
    const cause = this.#cause;
    const step = await this.#changes(cause);
    const hasChanged = step.ended.size + step.repeated.size + step.added.length + step.endedUnsent.length > 0;
    const stillOpen = this.#progress.open
      .filter((line) => !step.ended.has(line))
      .map((line) => step.repeated.get(line) ?? line);
    const open = [...stillOpen, ...step.added];
    const hasEnded = step.isAtEnd && open.length === 0 && !hasChanged;
    if (!hasChanged && !hasEnded) return true;
    if (step.isAtEnd && open.length === 0) this.wake(); // the next step ends the batch
    const now = this.#parts.clock.now();
    const results = [...step.ended.values(), ...step.endedUnsent];
    const counts = countsWith(this.#progress.counts, results);
    const endedJobs = this.#jobsOf(step);
    const progress: BatchState = {
      status: hasEnded ? this.#endStatus() : 'running',
      cursor: step.cursor,
      open,
      endedJobs,
      counts,
      startedAt: this.#progress.startedAt ?? now,
      endedAt: hasEnded ? now : null,
      ...(hasEnded && { removeAt: now + this.#ttlMs }),
    };
    if (hasEnded) await this.#closeFiles(counts, now + this.#ttlMs);
    await this.#removing; // from now on, their ids are no longer stored
    const stored = await this.#parts.store.advance(this.batch.id, progress, this.#appended(results));
    if (stored === 'lost') return false;
    if (stored !== null) this.cancel(stored);
    this.#progress = progress;
    for (const { jobId } of [...step.ended.keys(), ...step.repeated.keys()]) this.#sender.forgetLine(jobId);
    this.#removing = this.#removeJobs(endedJobs);
    for (const { outcome } of results) this.#parts.lineEnded(this.batch.api, outcome);
    return true;
  }

  /** Returns `failed` if lines are missing, because the file of the batch was removed. */
  #endStatus(): 'ended' | 'failed' {
    const { succeeded, errored, canceled, expired } = this.#progress.counts;
    return succeeded + errored + canceled + expired < this.batch.total ? 'failed' : 'ended';
  }

  async #changes(cause: EndCause | null): Promise<Step> {
    const { ended, repeated } = await this.#endOpen(cause);
    const changes = { ended, repeated, added: [], endedUnsent: [], cursor: this.#progress.cursor, isAtEnd: false };
    const room = this.#parts.maxOpen - this.#progress.open.length + ended.size;
    return { ...changes, ...(cause === null ? await this.#readLines(room) : await this.#endRemaining(cause)) };
  }

  /** Makes results of open lines whose jobs have ended: some at a time, because answers may be long. */
  async #endOpen(cause: EndCause | null): Promise<Pick<Step, 'ended' | 'repeated'>> {
    const ended = new Map<SentLine, LineResult>();
    const repeated = new Map<SentLine, SentLine>();
    const { open } = this.#progress;
    let length = 0;
    for (let from = 0; from < open.length && length < bytesAtOnce; from += finishedAtOnce) {
      const lines = open.slice(from, from + finishedAtOnce);
      const ends = await Promise.all(lines.map(async (line) => ({ line, end: await this.#endOf(line, cause) })));
      for (const { line, end } of ends) {
        if (end === 'repeat') repeated.set(line, { ...line, jobId: newJobId(), tries: line.tries + 1 });
        else if (end !== null) ended.set(line, end);
        length += end === 'repeat' || end === null ? 0 : end.text.length;
      }
    }
    if (length >= bytesAtOnce) this.wake(); // the next step follows at once
    return { ended, repeated };
  }

  /** Reads further lines, which get a job each. */
  async #readLines(room: number): Promise<Pick<Step, 'added' | 'cursor' | 'isAtEnd'>> {
    const added: SentLine[] = [];
    const lines = await this.#nextLines(room);
    for (const line of lines.found) {
      const { start, end } = line;
      const jobId = newJobId();
      this.#sender.addLine(jobId, line);
      added.push({ jobId, start, end, tries: 0 });
    }
    return { added, cursor: lines.cursor, isAtEnd: lines.isAtEnd };
  }

  /** Makes results for further lines, which get no job any more. */
  async #endRemaining(cause: EndCause): Promise<Pick<Step, 'endedUnsent' | 'cursor' | 'isAtEnd'>> {
    const worker = this.#parts.worker();
    if (worker === null) return { endedUnsent: [], cursor: this.#progress.cursor, isAtEnd: false };
    const { found, cursor, isAtEnd } = await this.#nextLines(endedAtOnce);
    if (!isAtEnd) this.wake(); // the next step follows at once
    if (found.length === 0) return { endedUnsent: [], cursor, isAtEnd };
    const { results } = await worker.endLines({ api: this.batch.api, ids: found.map(({ id }) => id), cause });
    return { endedUnsent: results, cursor, isAtEnd };
  }

  /** Finds this number of lines in the file: fewer at its end, or if they are long. */
  async #nextLines(count: number) {
    const found: FileLine[] = [];
    let { cursor } = this.#progress;
    const limit = cursor + bytesAtOnce;
    while (found.length < count && cursor < limit) {
      const line = await this.#reader.next();
      if (line === null) return { found, cursor, isAtEnd: true };
      found.push(line);
      cursor = line.end;
    }
    if (found.length < count) this.wake(); // the next step follows at once
    return { found, cursor, isAtEnd: false };
  }

  /** Returns the result of a line; null if the line has no result yet. `repeat`: the line gets another job. */
  async #endOf(line: SentLine, cause: EndCause | null): Promise<LineResult | 'repeat' | null> {
    const { client } = this.batch;
    const { jobId } = line;
    const refused = this.#sender.refusedResult(jobId);
    if (refused !== null) return refused;
    if (this.#sender.isSending(jobId)) return null;
    const { jobs } = this.#parts;
    const isUnsent = this.#sender.isUnsent(jobId);
    if (cause === null && isUnsent) return null;
    const ended = isUnsent ? 'missing' : (this.#taken.findAnswer(jobId) ?? (await jobs.findEndedLine(jobId, client)));
    if (ended === 'missing') return this.#endUnsent(line, cause);
    this.#sender.forgetLine(jobId);
    if (ended === null) {
      // A job that cannot be cancelled now is cancelled after the next step.
      if (cause !== null) void jobs.cancelJob(jobId, client).then(() => this.wake(), this.#parts.onFailure);
      return null;
    }
    if (cause === null && mustRepeat(ended.end) && line.tries + 1 < maxTries) return 'repeat';
    return this.#resultOf(ended, cause);
  }

  /** Returns the result of a line whose job has ended; null if no worker can write it now. */
  async #resultOf({ job, end, ...ended }: EndedLine, cause: EndCause | null): Promise<LineResult | null> {
    const worker = this.#parts.worker();
    if (worker === null) return null;
    const isDone = end.outcome === 'ok';
    const text = isDone ? await ended.text() : '';
    const answer = isDone ? { end, hasText: text !== '' } : null;
    const { frame, outcome } = await worker.writeLine({ api: this.batch.api, job, answer, cause });
    return { text: filledFrame(frame, text), outcome };
  }

  /** Prepares a line without a job to be sent, or makes its result if there is a cause. */
  async #endUnsent({ jobId, start }: SentLine, cause: EndCause | null): Promise<LineResult | null> {
    const line = this.#sender.lineOf(jobId) ?? (await this.#readerAt(start).next()) ?? { start, end: start, id: null };
    this.#sender.addLine(jobId, line);
    if (cause === null) return null;
    const ended = await this.#parts.worker()?.endLines({ api: this.batch.api, ids: [line.id], cause });
    return ended?.results[0] ?? null;
  }

  /** Sends the lines that have no job yet. `hasRoom`: whether there is room for their results. */
  #send(hasRoom: boolean): void {
    const worker = this.#parts.worker();
    if (worker === null || !this.#mayRun || this.#cause !== null) return;
    const jobIds = this.#progress.open.map(({ jobId }) => jobId);
    this.#sender.sendLines(worker, jobIds, hasRoom);
  }

  /** Time for which the batch and its results are stored after its end. */
  get #ttlMs(): number {
    return this.batch.removeAt - this.batch.createdAt;
  }

  /** Makes the files with results visible. Empty files are removed. */
  async #closeFiles({ succeeded, errored, canceled, expired }: LineCounts, expiresAt: number): Promise<void> {
    const { store } = this.#parts;
    const { outputFile, errorFile, client } = this.batch;
    for (const id of [outputFile, errorFile]) {
      const file = id === null ? null : await store.findFile(id, client);
      if (file === null) continue;
      const failures = errored + canceled + expired;
      const lines = errorFile === null ? succeeded + failures : file.id === errorFile ? failures : succeeded;
      await (file.bytes === 0 ? store.removeFile(file.id) : store.completeFile(file.id, { ...file, lines, expiresAt }));
    }
  }

  #appended(results: readonly LineResult[]): Appended[] {
    const { outputFile, errorFile } = this.batch;
    const fileOf = ({ outcome }: LineResult) => (outcome === 'succeeded' ? outputFile : (errorFile ?? outputFile));
    return [outputFile, ...(errorFile === null ? [] : [errorFile])].flatMap((id) => {
      const texts = results.filter((result) => fileOf(result) === id).map(({ text }) => `${text}\n`);
      return texts.length === 0 ? [] : [{ id, data: Buffer.from(texts.join('')) }];
    });
  }

  /** Returns the jobs of the lines that have a result, or another job, after the step. A refused line has no job. */
  #jobsOf({ ended, repeated }: Step): string[] {
    const lines = [...ended.keys(), ...repeated.keys()];
    return lines.map(({ jobId }) => jobId).filter((jobId) => this.#sender.refusedResult(jobId) === null);
  }

  /** Removes jobs. A failure of the store is ignored here: the jobs are removed when their time has passed. */
  async #removeJobs(ids: readonly string[]): Promise<void> {
    const remove = async (id: string) => {
      const isRemoved = await this.#parts.jobs.removeJob(id).then(
        () => true,
        (error) => {
          this.#parts.onFailure(error);
          return false;
        },
      );
      this.#taken.settle(id, isRemoved);
    };
    await Promise.all(ids.map(remove));
  }

  #readerAt(position: number): LineReader {
    return new LineReader((from) => this.#parts.store.readPiece(this.batch.inputFile, from), position);
  }
}

/** Whether the job did not get its answer for a reason that does not concern the line. */
function mustRepeat(end: JobEnd): boolean {
  return end.outcome !== 'ok' && (end.failure.reason === 'host_lost' || end.failure.reason === 'budget');
}

function countsWith(counts: LineCounts, results: readonly LineResult[]): LineCounts {
  const more = { ...counts };
  for (const { outcome } of results) more[outcome]++;
  return more;
}
