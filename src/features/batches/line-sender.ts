import { withResolvers } from '../../shared/async.js';
import { RelayError } from '../../shared/errors.js';
import type { StoredBatch } from '../stores/contract/files.js';
import type { LineWorker, RunParts } from './batch-feeder.js';
import type { FileLine, LineResult } from './views.js';

/** Bytes of the lines of one batch that workers read at once. A longer line is read alone. */
const bytesAtOnce = 4 * 1024 * 1024;
/** Size from which a line counts as long. Long lines of all batches take turns. */
const longLine = 1024 * 1024;
const maxPauseSeconds = 5;

/** Owns the lines of a batch that have no job yet, and sends them to workers. */
export class LineSender {
  readonly #batch: StoredBatch;
  readonly #parts: RunParts;
  /** Called when there is a result, or room for further lines. */
  readonly #onNews: () => void;
  readonly #unsent = new Map<string, FileLine>();
  readonly #sending = new Map<string, Promise<void>>();
  /** Lines that may have a job, although a worker has not confirmed it. */
  readonly #doubtful = new Set<string>();
  /** Results of lines that are invalid requests. */
  readonly #refused = new Map<string, LineResult>();
  #bytes = 0;
  /** Number of lines that could not be sent a moment ago. Until their pauses end, no other line is sent. */
  #pausing = 0;
  #isHeldBack = false;
  readonly #stopping = new AbortController();

  constructor(batch: StoredBatch, parts: RunParts, onNews: () => void) {
    this.#batch = batch;
    this.#parts = parts;
    this.#onNews = onNews;
  }

  get hasUnsent(): boolean {
    return this.#unsent.size > 0;
  }

  /** Adds a line that has no job. */
  addLine(jobId: string, line: FileLine): void {
    this.#unsent.set(jobId, line);
    this.#doubtful.delete(jobId);
  }

  /** Returns a line that has no job; null if the line is not known, or has one. */
  lineOf(jobId: string): FileLine | null {
    return this.#unsent.get(jobId) ?? null;
  }

  isSending(jobId: string): boolean {
    return this.#sending.has(jobId);
  }

  /** Whether the line certainly has no job. */
  isUnsent(jobId: string): boolean {
    return this.#unsent.has(jobId) && !this.#doubtful.has(jobId);
  }

  /** Returns the result of an invalid request; null for other lines. */
  refusedResult(jobId: string): LineResult | null {
    return this.#refused.get(jobId) ?? null;
  }

  /** Forgets a line that has a job, or whose result is stored. */
  forgetLine(jobId: string): void {
    this.#unsent.delete(jobId);
    this.#doubtful.delete(jobId);
    this.#refused.delete(jobId);
  }

  /** Sends lines that have no job. Lines that cannot be sent now are sent by a later call. */
  sendLines(worker: LineWorker, jobIds: readonly string[], hasRoom: boolean): void {
    this.#isHeldBack = false;
    for (const jobId of jobIds) {
      const line = this.#unsent.get(jobId);
      const isBusy = this.#sending.has(jobId) || this.#refused.has(jobId) || this.#doubtful.has(jobId);
      if (line === undefined || isBusy) continue;
      const bytes = line.end - line.start;
      this.#isHeldBack = this.#pausing > 0 || (this.#bytes > 0 && this.#bytes + bytes > bytesAtOnce);
      if (this.#isHeldBack) return;
      this.#bytes += bytes;
      const sending = this.#sendLine(worker, jobId, line, hasRoom).finally(() => {
        this.#sending.delete(jobId);
        if (this.#isHeldBack || this.#doubtful.has(jobId)) this.#onNews();
      });
      this.#sending.set(jobId, sending);
    }
  }

  /** Sends no further lines, and ends the pauses after failures. */
  stopSending(): void {
    this.#stopping.abort();
  }

  /** Resolves when no line is being sent. */
  async untilIdle(): Promise<void> {
    await Promise.all(this.#sending.values());
  }

  async #sendLine(worker: LineWorker, jobId: string, line: FileLine, hasRoom: boolean): Promise<void> {
    const bytes = line.end - line.start;
    const submit = () => this.#submit(worker, jobId, line, hasRoom);
    try {
      await (bytes < longLine ? submit() : this.#parts.inTurn(submit));
      this.#bytes -= bytes;
    } catch (error) {
      this.#bytes -= bytes;
      this.#doubtful.add(jobId);
      this.#parts.onFailure(error);
      await this.#pauseAfterFailure((error instanceof RelayError ? error.retryAfterSeconds : undefined) ?? 1);
    }
  }

  async #submit(worker: LineWorker, jobId: string, line: FileLine, hasRoom: boolean): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { id: batch, api, client, caller, inputFile: file } = this.#batch;
    const { refused } = await worker.submitLine({ batch, api, client, caller, jobId, file, line, hasRoom });
    this.#unsent.delete(jobId);
    if (refused === null) return;
    this.#refused.set(jobId, refused);
    this.#onNews();
  }

  async #pauseAfterFailure(seconds: number): Promise<void> {
    const { signal } = this.#stopping;
    const { promise: isOver, resolve } = withResolvers();
    const stopTimer = this.#parts.clock.after(Math.min(seconds, maxPauseSeconds) * 1000, () => resolve());
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    this.#pausing++;
    await isOver;
    this.#pausing--;
    stopTimer();
  }
}
