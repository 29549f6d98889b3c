import { inLines } from '../../shared/async.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { invalid, RelayError, storeUnavailable } from '../../shared/errors.js';
import type { FileView, PageOrder } from '../../shared/files.js';
import { newId } from '../../shared/ids.js';
import { formatCount } from '../../shared/text/format.js';
import type { UnstoredAnswer } from '../background/background-jobs.js';
import type { StoredFiles } from '../files/stored-files.js';
import {
  type BatchApi,
  type BatchCaller,
  type FileStore,
  isOpenBatch,
  type StoredBatch,
} from '../stores/contract/files.js';
import { BatchFeeder, type RunParts } from './batch-feeder.js';
import type { BatchView } from './views.js';

/** Time after which the remaining lines of a batch expire. */
const batchWindowMs = 24 * 3_600_000;
/** Interval at which this host looks for batches to run. */
const checkMs = 1000;
/** A host that does not renew its lease for this long counts as dead. */
const leaseMs = 15_000;
const maxOpenBatches = 100;
/** Largest number of stored batches of a key holder. The oldest ones that have ended make room for a new one. */
const maxBatches = 1000;
/** Bytes of a short result. Each line gets a result, also without room for it. */
const resultBytes = 512;
/** Largest page of a list: a batch may have much metadata. */
const maxPage = 100;

export interface NewBatch {
  readonly client: ClientText;
  readonly caller: BatchCaller;
  readonly api: BatchApi;
  readonly inputFile: string;
  readonly metadata: StoredBatch['metadata'];
}

export interface BatchParts extends Omit<RunParts, 'store' | 'isLeased'> {
  readonly store: FileStore;
  readonly files: Pick<StoredFiles, 'checkOn' | 'checkRoom' | 'createFile' | 'findFile'>;
  readonly clock: Clock;
}

/** Limits of batches, and the time until a batch is removed. `maxLines`: lines of all unfinished batches of a client. */
export interface BatchLimits {
  readonly maxLines: number;
  /** Background jobs that may wait: each line is one. */
  readonly maxJobs: number;
  readonly ttlMs: number;
}

/**
 * Owns the batches that this host runs: for each key holder, the oldest one that has not ended, and batches that
 * only need an end. Methods about a batch reject with `not_found` if the client has no such batch.
 */
export class Batches {
  readonly #parts: BatchParts;
  readonly #limits: BatchLimits;
  readonly #runs = new Map<string, BatchFeeder>();
  /** Ends of the runs. */
  readonly #ends = new Set<Promise<void>>();
  /** Batches of one key holder are created one after the other, so that they cannot exceed the limits together. */
  readonly #inLineOf = inLines();
  #isStarted = false;
  #isChecking = false;
  /** Time until which no other host runs the batches that this host has leased. */
  #leasedUntil = 0;

  constructor(parts: BatchParts, limits: BatchLimits) {
    this.#parts = parts;
    this.#limits = limits;
  }

  /** Number of batches that this host runs. */
  get running(): number {
    return this.#runs.size;
  }

  /** Runs the stored batches from now on. */
  startFeeding(): void {
    this.#isStarted = true;
    this.#parts.clock.every(checkMs, () => void this.#check());
    void this.#check();
  }

  /** Sends no further lines: the next service continues the batches. */
  stopFeeding(): void {
    this.#isStarted = false;
    for (const run of this.#runs.values()) run.stopFeeding();
  }

  /** Resolves when no run uses the store any more, after `stopFeeding`. */
  async untilIdle(): Promise<void> {
    await Promise.all(this.#ends);
  }

  /** Collects the result of an ended job, if it is the job of a line. */
  jobEnded(client: ClientText): void {
    for (const run of this.#runs.values()) if (run.batch.client === client) run.wake();
  }

  /** Stores the answer of a line if this host runs its batch. Resolves with whether it is stored, and its job is removed. */
  async takeAnswer(answer: UnstoredAnswer): Promise<boolean> {
    const run = this.#runs.get(answer.job.form?.line?.batch ?? '');
    return run === undefined ? false : run.takeAnswer(answer);
  }

  /**
   * Must be called before the job of a line is accepted. Throws `store_unavailable` if no run sends this line: a host that
   * stood still for a while would otherwise run a line again whose result another host has stored.
   */
  checkSending(jobId: string): void {
    if (![...this.#runs.values()].some((run) => run.isSending(jobId)))
      throw storeUnavailable('another host may send this line of the batch');
  }

  /** Creates a batch from a file. Rejects like `checkInput`. */
  createBatch(batch: NewBatch): Promise<BatchView> {
    return this.#inLineOf(holderOf(batch.client), () => this.#create(batch));
  }

  async #create({ client, caller, api, inputFile, metadata }: NewBatch): Promise<BatchView> {
    const { store, files, clock } = this.#parts;
    const input = await files.findFile(inputFile, client);
    await this.checkInput(client, input);
    await this.#makeRoom(holderOf(client));
    const purpose = api === 'messages' ? 'message_batch' : 'batch_output';
    const create = (name: string) => files.createFile({ client, purpose, name, mediaType: 'application/jsonl' });
    const id = `${api === 'messages' ? 'msgbatch' : 'batch'}_${newId()}`;
    const outputFile = await create(`${id}_output.jsonl`);
    const errorFile = api === 'messages' ? null : await this.#createOrRemove(create(`${id}_error.jsonl`), outputFile);
    const createdAt = clock.now();
    const times = { createdAt, expiresAt: createdAt + batchWindowMs, removeAt: createdAt + this.#limits.ttlMs };
    const counts = { succeeded: 0, errored: 0, canceled: 0, expired: 0 };
    const progress = { status: 'waiting', cursor: 0, open: [], counts, startedAt: null, endedAt: null } as const;
    const owner = { client, holder: holderOf(client), caller };
    const total = input.lines;
    const batch = { id, ...owner, api, inputFile, outputFile, errorFile, metadata, total, ...times, cancelAt: null };
    await store.addBatch({ ...batch, progress });
    void this.#check();
    return viewOf({ ...batch, progress });
  }

  /** Removes the other file of a batch if its second one cannot be created. */
  async #createOrRemove(created: Promise<string>, otherFile: string): Promise<string> {
    try {
      return await created;
    } catch (error) {
      await this.#parts.store.removeFile(otherFile);
      throw error;
    }
  }

  async #makeRoom(holder: ClientText): Promise<void> {
    const { store } = this.#parts;
    for (const batch of await store.endedBeyond(holder, maxBatches - 1)) {
      // Clients of the other API see the files themselves.
      if (batch.api === 'messages') await this.#removeFiles(batch);
      await store.removeBatch(batch.id);
    }
  }

  /**
   * Rejects with `validation_error` if no batch may be created from this file, which is not read, and with
   * `payload_too_large` if there is no room for short results.
   */
  async checkInput(client: ClientText, { purpose, lines }: Pick<FileView, 'purpose' | 'lines'>): Promise<void> {
    if (this.#limits.maxJobs === 0)
      throw new RelayError('not_found', 'this service has no background jobs for batches (MODEL_API_MAX_JOBS is 0)');
    const field = purpose === 'message_batch' ? 'requests' : 'input_file_id';
    if (purpose !== 'batch' && purpose !== 'message_batch')
      throw invalid('input_file_id', `must be a file of the purpose batch, and this one has ${purpose}`);
    if (lines === 0) throw invalid('input_file_id', 'must be a file with at least one line');
    const open = await this.#parts.store.openBatches(holderOf(client));
    const sum = open.reduce((total, batch) => total + batch.total, lines);
    const { maxLines } = this.#limits;
    if (sum > maxLines) {
      const limit = `${formatCount(maxLines, 'line')} in unfinished batches (MODEL_API_MAX_BATCH_LINES)`;
      throw invalid(
        field,
        `has ${formatCount(lines, 'line')}, and all unfinished batches of a client may have ${limit}`,
      );
    }
    if (open.length >= maxOpenBatches)
      throw invalid(field, `cannot run now: a client may have ${maxOpenBatches} unfinished batches`);
    await this.#parts.files.checkRoom(client, sum * resultBytes);
  }

  async get(id: string, client: ClientText): Promise<BatchView> {
    return viewOf(await this.#find(id, client));
  }

  async listBatches(order: PageOrder, apis: readonly BatchApi[]): Promise<{ batches: BatchView[]; hasMore: boolean }> {
    this.#parts.files.checkOn();
    const { items, hasMore } = await this.#parts.store.listBatches(
      { ...order, limit: Math.min(order.limit, maxPage) },
      apis,
    );
    return { batches: items.map(viewOf), hasMore };
  }

  /** Cancels a batch. A batch that has ended is unchanged. */
  async cancel(id: string, client: ClientText): Promise<BatchView> {
    await this.#find(id, client);
    const at = this.#parts.clock.now();
    await this.#parts.store.cancelBatch(id, at);
    this.#runs.get(id)?.cancel(at);
    void this.#check();
    return this.get(id, client);
  }

  /** Removes a batch that has ended, and the files with its results. */
  async removeBatch(id: string, client: ClientText): Promise<void> {
    const batch = await this.#find(id, client);
    if (isOpenBatch(batch)) throw invalid('batch', 'has not ended: cancel it first');
    await this.#removeFiles(batch);
    await this.#parts.store.removeBatch(id);
  }

  async #removeFiles({ api, inputFile, outputFile, errorFile }: StoredBatch): Promise<void> {
    const files = [outputFile, errorFile, api === 'messages' ? inputFile : null];
    for (const file of files) if (file !== null) await this.#parts.store.removeFile(file);
  }

  async #find(id: string, client: ClientText): Promise<StoredBatch> {
    this.#parts.files.checkOn();
    const batch = await this.#parts.store.findBatch(id, client);
    if (batch === null) throw new RelayError('not_found', 'no such batch');
    return batch;
  }

  /** Starts the runs of batches that this host may run. A failure is ignored: the next check tries again. */
  async #check(): Promise<void> {
    if (!this.#isStarted || this.#isChecking) return;
    this.#isChecking = true;
    try {
      const { store, clock } = this.#parts;
      const holders = new Set([...this.#runs.values()].map(({ batch }) => batch.holder));
      const leasedAt = clock.now();
      const leased = await store.leaseBatches(leaseMs);
      this.#leasedUntil = leasedAt + leaseMs;
      this.#stopAllBut(leased);
      for (const batch of leased) {
        const run = this.#runs.get(batch.id);
        if (run !== undefined && batch.cancelAt !== null) run.cancel(batch.cancelAt);
        const mayBegin = !holders.has(batch.holder) || batch.cancelAt !== null || batch.expiresAt <= clock.now();
        if (run !== undefined || !mayBegin || !this.#isStarted) continue;
        holders.add(batch.holder);
        this.#begin(batch);
      }
    } catch (error) {
      this.#parts.onFailure(error);
    } finally {
      this.#isChecking = false;
    }
  }

  /** Stops the runs of batches that this host no longer has: after a pause of the process, another host runs them. */
  #stopAllBut(leased: readonly StoredBatch[]): void {
    const ids = new Set(leased.map(({ id }) => id));
    for (const [id, run] of this.#runs) if (!ids.has(id)) run.stopFeeding();
  }

  #begin(batch: StoredBatch): void {
    const isLeased = () => this.#parts.clock.now() < this.#leasedUntil;
    const run = new BatchFeeder(batch, { ...this.#parts, isLeased });
    this.#runs.set(batch.id, run);
    const ended = run.runBatch().then(
      () => true,
      (error) => {
        this.#parts.onFailure(error); // the next check begins with the stored progress
        return false;
      },
    );
    const end = ended.then((isWhole) => {
      this.#runs.delete(batch.id);
      this.#ends.delete(end);
      if (isWhole) void this.#check();
    });
    this.#ends.add(end);
  }
}

function viewOf(batch: StoredBatch): BatchView {
  const { id, api, inputFile, metadata, total, createdAt, cancelAt, expiresAt, progress } = batch;
  const { status, counts, startedAt, endedAt } = progress;
  const { succeeded, errored, canceled, expired } = counts;
  const failures = errored + canceled + expired;
  const isEnded = endedAt !== null;
  const hasOutput = isEnded && (batch.errorFile === null ? succeeded + failures : succeeded) > 0;
  const files = {
    outputFile: hasOutput ? batch.outputFile : null,
    errorFile: isEnded && failures > 0 ? batch.errorFile : null,
  };
  return {
    id,
    api,
    status,
    inputFile,
    ...files,
    metadata,
    total,
    counts,
    createdAt,
    startedAt,
    cancelAt,
    endedAt,
    expiresAt,
  };
}
