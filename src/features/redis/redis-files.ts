import type { ClientText } from '../../shared/client.js';
import type { FilePurpose, PageOrder } from '../../shared/files.js';
import {
  type Appended,
  type BatchApi,
  type BatchState,
  type CompletedFile,
  endedAtOnce,
  type FileStore,
  type FileUsage,
  filePieceBytes,
  isOpenBatch,
  type StoredBatch,
  type StoredFile,
  type StoredPage,
} from '../stores/contract/files.js';
import type { RedisConnection } from './redis-connection.js';
import type { ScriptArguments, ScriptReply } from './redis-link.js';

const ticksPerMs = 100;
/** Number of entries after which `expireFiles` calls the script again. */
const expiredAtOnce = 20;

type FileFields = readonly (Buffer | null)[];

/** Files and batches in Redis. One host at a time runs the batches of a key holder. */
export class RedisFiles implements FileStore {
  readonly isDurable = true;
  readonly #redis: RedisConnection;
  /** Identifies this service in the batches that it runs. */
  readonly #run: string;

  constructor(redis: RedisConnection, run: string) {
    this.#redis = redis;
    this.#run = run;
  }

  async usageOf(holder: ClientText): Promise<FileUsage> {
    const { remaining } = await this.#script('usage', { holder });
    const [files = 0, bytes = 0] = remaining.map(Number);
    return { files, bytes };
  }

  async createFile(file: StoredFile): Promise<void> {
    const { id, client, holder, purpose, createdAt, expiresAt } = file;
    await this.#script('create', {
      ...{ id, client, holder, purpose, createdAt, expiresAt },
      record: JSON.stringify(file),
    });
  }

  async appendPieces(pieces: readonly Appended[]): Promise<void> {
    for (const { id, data } of pieces)
      for (let from = 0; from < data.length; from += filePieceBytes)
        await this.#script('append', { id, data: data.subarray(from, from + filePieceBytes) });
  }

  async completeFile(id: string, { purpose, lines, expiresAt }: CompletedFile): Promise<boolean> {
    return (await this.#script('complete', { id, purpose, lines, expiresAt })).verdict === 'ok';
  }

  async findFile(id: string, client: ClientText): Promise<StoredFile | null> {
    const { verdict, remaining } = await this.#script('find', { id, client });
    if (verdict !== 'ok') return null;
    return fileOf(remaining[0] as FileFields);
  }

  async readPiece(id: string, from: number): Promise<Buffer> {
    return (await this.#script('read', { id, from })).remaining[0] as Buffer;
  }

  async listFiles(order: PageOrder, purposes: readonly FilePurpose[]): Promise<StoredPage<StoredFile>> {
    const { rows, hasMore } = await this.#page('list', order, purposes);
    return { items: rows.map(fileOf), hasMore };
  }

  async removeFile(id: string): Promise<void> {
    await this.#script('remove', { id });
  }

  async expireFiles(now: number, brokenBefore: number): Promise<void> {
    for (let count = expiredAtOnce; count >= expiredAtOnce; )
      count = Number((await this.#script('expire', { at: now, before: brokenBefore })).remaining[0]);
  }

  async addBatch(batch: StoredBatch): Promise<void> {
    const { id, client, holder, api, outputFile, errorFile, removeAt, progress } = batch;
    await this.#script('addBatch', {
      ...{ id, client, holder, api, removeAt, status: progress.status },
      ...{ record: JSON.stringify(batch), progress: JSON.stringify(progress) },
      files: [outputFile, errorFile ?? ''].join(' '),
    });
  }

  async findBatch(id: string, client: ClientText): Promise<StoredBatch | null> {
    const { verdict, remaining } = await this.#script('findBatch', { id, client });
    return verdict === 'ok' ? batchOf(remaining[0] as FileFields) : null;
  }

  async listBatches(order: PageOrder, apis: readonly BatchApi[] | null): Promise<StoredPage<StoredBatch>> {
    const { rows, hasMore } = await this.#page('listBatches', order, apis);
    return { items: rows.map(([, , ...fields]) => batchOf(fields)), hasMore };
  }

  async openBatches(holder: ClientText): Promise<readonly StoredBatch[]> {
    const { remaining } = await this.#script('openBatches', { holder });
    return (remaining[0] as FileFields[]).map(batchOf);
  }

  async endedBeyond(holder: ClientText, count: number): Promise<readonly StoredBatch[]> {
    const { remaining } = await this.#script('endedBeyond', { holder, count, limit: endedAtOnce });
    return (remaining[0] as FileFields[]).map(batchOf);
  }

  async cancelBatch(id: string, at: number): Promise<void> {
    await this.#script('cancelBatch', { id, at });
  }

  async removeBatch(id: string): Promise<void> {
    await this.#script('removeBatch', { id });
  }

  async leaseBatches(leaseMs: number): Promise<readonly StoredBatch[]> {
    const { remaining } = await this.#script('lease', { run: this.#run, ticks: leaseMs * ticksPerMs });
    return (remaining[0] as FileFields[]).map(batchOf);
  }

  async advance(id: string, progress: BatchState, results: readonly Appended[]): Promise<number | null | 'lost'> {
    const appended = results.map(({ id: file, data }, index) => ({
      [`file${index + 1}`]: file,
      [`data${index + 1}`]: data,
    }));
    const { verdict, remaining } = await this.#script('advance', {
      ...{ id, run: this.#run, progress: JSON.stringify(progress), status: progress.status },
      ...{ isOpen: isOpenBatch({ progress }) ? 1 : 0, removeAt: progress.removeAt ?? '', count: results.length },
      ...Object.assign({}, ...appended),
    });
    if (verdict === 'lost') return 'lost';
    const cancelAt = String(remaining[0]);
    return cancelAt === '' ? null : Number(cancelAt);
  }

  async #page(script: string, { client, after, limit, isAscending }: PageOrder, filter: readonly string[] | null) {
    const accepted = filter === null ? '*' : ` ${filter.join(' ')} `;
    const page = { client, after: after ?? '', limit, ascending: isAscending ? 1 : 0, filter: accepted };
    const { remaining } = await this.#script(script, page);
    return { rows: remaining[0] as FileFields[], hasMore: Number(remaining[1]) === 1 };
  }

  #script(name: string, args: ScriptArguments): Promise<ScriptReply> {
    return this.#redis.run('file', `files.${name}`, args);
  }
}

function fileOf([purpose, whole, record, bytes, lines, expiresAt]: FileFields): StoredFile {
  return {
    ...(JSON.parse(String(record)) as StoredFile),
    purpose: String(purpose) as FilePurpose,
    bytes: Number(bytes),
    lines: Number(lines),
    isWhole: String(whole) === '1',
    expiresAt: Number(expiresAt),
  };
}

function batchOf([record, progress, cancelAt]: FileFields): StoredBatch {
  return {
    ...(JSON.parse(String(record)) as StoredBatch),
    progress: JSON.parse(String(progress)) as BatchState,
    cancelAt: cancelAt ? Number(cancelAt) : null,
  };
}
