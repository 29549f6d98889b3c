import type { ClientText } from '../../../shared/client.js';
import type { FilePurpose, FileView, PageOrder } from '../../../shared/files.js';

/** Largest piece of a file that is stored or read at once, bytes. */
export const filePieceBytes = 192 * 1024;

/** Time after which an upload that has not ended counts as broken. */
export const uploadLimitMs = 3_600_000;

/** File of a client. `holder`: see `holderOf`. */
export interface StoredFile extends FileView {
  readonly client: ClientText;
  readonly holder: ClientText;
  /** Whether the file has all its bytes. Until then, clients do not see it. */
  readonly isWhole: boolean;
}

/** What is known about a file when it has all its bytes. */
export type CompletedFile = Pick<StoredFile, 'purpose' | 'lines' | 'expiresAt'>;

/** Amount that the files of a holder and all its sub-clients use. */
export interface FileUsage {
  readonly files: number;
  readonly bytes: number;
  /** Bytes of the files of all other holders, if the store is in memory. */
  readonly othersBytes?: number;
}

/** Line whose job may exist. `tries`: number of jobs of this line whose host has died. */
export interface SentLine {
  readonly jobId: string;
  /** Position of the line in the file, and of the next one, bytes. */
  readonly start: number;
  readonly end: number;
  readonly tries: number;
}

/** API whose requests a batch contains, by the name that a feature gives it. */
export type BatchApi = string;

/** `waiting`: an earlier batch of the client runs. `failed`: the file of the batch could not be read to its end. */
export type BatchStatus = 'waiting' | 'running' | 'ended' | 'failed';

/** Number of lines by how they have ended. */
export type LineCounts = Readonly<Record<'succeeded' | 'errored' | 'canceled' | 'expired', number>>;

/** Facts about the request that created a batch, which apply to each of its lines. */
export interface BatchCaller {
  /** Groups for which the usage counts, see `JobRequest`. */
  readonly groups: readonly string[];
  /** Whether no other model may answer if the requested one cannot. */
  readonly refusesFallback: boolean;
}

/** State of a batch that changes while it runs. */
export interface BatchState {
  readonly status: BatchStatus;
  /** Position of the first line without a job or a result, bytes. */
  readonly cursor: number;
  readonly open: readonly SentLine[];
  /** Jobs to remove, because the results of their lines are stored. Missing in batches of earlier versions. */
  readonly endedJobs?: readonly string[];
  readonly counts: LineCounts;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Time at which the ended batch is removed. Missing while it is open, and in batches of earlier versions. */
  readonly removeAt?: number;
}

export interface StoredBatch {
  readonly id: string;
  readonly client: ClientText;
  readonly holder: ClientText;
  readonly caller: BatchCaller;
  readonly api: BatchApi;
  readonly inputFile: string;
  /** File of the results. Results that are errors are in `errorFile`, unless it is null. */
  readonly outputFile: string;
  readonly errorFile: string | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly total: number;
  readonly createdAt: number;
  /** Time at which the remaining lines expire. */
  readonly expiresAt: number;
  /** Time at which the batch would be removed if it ended at once, see `BatchState.removeAt`. */
  readonly removeAt: number;
  /** Time at which its client has cancelled the batch; null if it has not. */
  readonly cancelAt: number | null;
  readonly progress: BatchState;
}

/** Bytes to add to a file. */
export interface Appended {
  readonly id: string;
  readonly data: Buffer;
}

/** Page in the requested order. */
export interface StoredPage<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
}

/**
 * Stores files in pieces, and batches. On a failure, all methods reject with `store_unavailable`. A file or a batch of
 * another client is null, as if it did not exist.
 */
export interface FileStore {
  /** Whether files survive a restart of the service. */
  readonly isDurable: boolean;
  usageOf(holder: ClientText): Promise<FileUsage>;
  /** Adds a file without bytes. */
  createFile(file: StoredFile): Promise<void>;
  /** Adds bytes at the end of files. A file that does not exist is skipped. */
  appendPieces(pieces: readonly Appended[]): Promise<void>;
  /** Shows the file to its client. Resolves with false if the file does not exist. */
  completeFile(id: string, whole: CompletedFile): Promise<boolean>;
  findFile(id: string, client: ClientText): Promise<StoredFile | null>;
  /** Reads up to `filePieceBytes` bytes. Empty at the end of the file, and if the file does not exist. */
  readPiece(id: string, from: number): Promise<Buffer>;
  /** Lists the whole files of a client with one of the purposes. */
  listFiles(order: PageOrder, purposes: readonly FilePurpose[]): Promise<StoredPage<StoredFile>>;
  removeFile(id: string): Promise<void>;
  /**
   * Removes files whose time has passed, files that are not whole since `brokenBefore`, and batches. An open batch and
   * its files stay.
   */
  expireFiles(now: number, brokenBefore: number): Promise<void>;

  addBatch(batch: StoredBatch): Promise<void>;
  findBatch(id: string, client: ClientText): Promise<StoredBatch | null>;
  /** Lists the batches of a client for one of these APIs; with null, for all. */
  listBatches(order: PageOrder, apis: readonly BatchApi[] | null): Promise<StoredPage<StoredBatch>>;
  /** Lists the batches of a holder that have not ended, oldest first. */
  openBatches(holder: ClientText): Promise<readonly StoredBatch[]>;
  /** Lists ended batches of a holder that are not among its newest `count` batches: some at a time, oldest first. */
  endedBeyond(holder: ClientText, count: number): Promise<readonly StoredBatch[]>;
  /** Marks an open batch as cancelled; any other batch is unchanged. */
  cancelBatch(id: string, at: number): Promise<void>;
  removeBatch(id: string): Promise<void>;
  /**
   * Lists all batches that have not ended and that this host may run, oldest first. No other host gets them before
   * `leaseMs` have passed.
   */
  leaseBatches(leaseMs: number): Promise<readonly StoredBatch[]>;
  /**
   * Stores the progress of a leased batch together with new results. Resolves with the stored `cancelAt`, or with
   * `lost` if the batch was removed or another host runs it: then nothing was stored.
   */
  advance(id: string, progress: BatchState, results: readonly Appended[]): Promise<number | null | 'lost'>;
}

/** Largest number of batches that `endedBeyond` lists. */
export const endedAtOnce = 20;

export function isOpenBatch({ progress: { status } }: Pick<StoredBatch, 'progress'>): boolean {
  return status === 'waiting' || status === 'running';
}
