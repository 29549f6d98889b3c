import type { ClientText } from '../../../shared/client.js';
import type { FilePurpose, PageOrder } from '../../../shared/files.js';
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
} from '../contract/files.js';

/** A file with its bytes in blocks of `filePieceBytes`, the last of which may be shorter. */
interface MemoryFile {
  file: StoredFile;
  readonly blocks: Buffer[];
}

/** Owns the files and batches of a service without a durable store. */
export class MemoryFiles implements FileStore {
  readonly isDurable = false;
  /** Files, oldest first, as are the batches. */
  readonly #files = new Map<string, MemoryFile>();
  readonly #batches = new Map<string, StoredBatch>();

  /** Files and bytes of each holder of files, and the bytes of all: each piece of an upload asks for them. */
  readonly #usage = new Map<ClientText, { files: number; bytes: number }>();
  #allBytes = 0;

  async usageOf(holder: ClientText): Promise<FileUsage> {
    const own = this.#usage.get(holder) ?? { files: 0, bytes: 0 };
    return { ...own, othersBytes: this.#allBytes - own.bytes };
  }

  #count(holder: ClientText, files: number, bytes: number): void {
    const before = this.#usage.get(holder) ?? { files: 0, bytes: 0 };
    const after = { files: before.files + files, bytes: before.bytes + bytes };
    if (after.files === 0) this.#usage.delete(holder);
    else this.#usage.set(holder, after);
    this.#allBytes += bytes;
  }

  async createFile(file: StoredFile): Promise<void> {
    this.#files.set(file.id, { file, blocks: [] });
    this.#count(file.holder, 1, file.bytes);
  }

  async appendPieces(pieces: readonly Appended[]): Promise<void> {
    for (const { id, data } of pieces) this.#append(id, data);
  }

  #append(id: string, data: Buffer): void {
    const found = this.#files.get(id);
    if (found === undefined) return;
    const last = found.blocks.at(-1);
    const room = last === undefined ? 0 : filePieceBytes - last.length;
    if (last !== undefined && room > 0)
      found.blocks[found.blocks.length - 1] = Buffer.concat([last, data.subarray(0, room)]);
    for (let from = room; from < data.length; from += filePieceBytes)
      found.blocks.push(Buffer.from(data.subarray(from, from + filePieceBytes)));
    found.file = { ...found.file, bytes: found.file.bytes + data.length };
    this.#count(found.file.holder, 0, data.length);
  }

  async completeFile(id: string, whole: CompletedFile): Promise<boolean> {
    const found = this.#files.get(id);
    if (found === undefined) return false;
    found.file = { ...found.file, ...whole, isWhole: true };
    return true;
  }

  async findFile(id: string, client: ClientText): Promise<StoredFile | null> {
    const file = this.#files.get(id)?.file;
    return file?.client === client ? file : null;
  }

  async readPiece(id: string, from: number): Promise<Buffer> {
    const block = this.#files.get(id)?.blocks[Math.floor(from / filePieceBytes)];
    return block?.subarray(from % filePieceBytes) ?? Buffer.alloc(0);
  }

  async listFiles(order: PageOrder, purposes: readonly FilePurpose[]): Promise<StoredPage<StoredFile>> {
    const files = [...this.#files.values()].map(({ file }) => file);
    return pageOf(
      files.filter(({ client, isWhole, purpose }) => client === order.client && isWhole && purposes.includes(purpose)),
      order,
    );
  }

  async removeFile(id: string): Promise<void> {
    const found = this.#files.get(id);
    if (found !== undefined) this.#remove(found.file);
  }

  #remove({ id, holder, bytes }: StoredFile): void {
    this.#files.delete(id);
    this.#count(holder, -1, -bytes);
  }

  async expireFiles(now: number, brokenBefore: number): Promise<void> {
    const filesInUse = new Set([...this.#batches.values()].filter(isOpenBatch).flatMap(filesOf));
    for (const { file } of this.#files.values()) {
      const isBroken = !file.isWhole && file.createdAt < brokenBefore;
      if ((file.expiresAt <= now || isBroken) && !filesInUse.has(file.id)) this.#remove(file);
    }
    for (const batch of this.#batches.values()) {
      const removeAt = batch.progress.removeAt ?? batch.removeAt;
      if (removeAt <= now && !isOpenBatch(batch)) this.#batches.delete(batch.id);
    }
  }

  async addBatch(batch: StoredBatch): Promise<void> {
    this.#batches.set(batch.id, batch);
  }

  async findBatch(id: string, client: ClientText): Promise<StoredBatch | null> {
    const batch = this.#batches.get(id);
    return batch?.client === client ? batch : null;
  }

  async listBatches(order: PageOrder, apis: readonly BatchApi[] | null): Promise<StoredPage<StoredBatch>> {
    return pageOf(
      [...this.#batches.values()].filter(({ client, api }) => client === order.client && apis?.includes(api) !== false),
      order,
    );
  }

  async openBatches(holder: ClientText): Promise<readonly StoredBatch[]> {
    return [...this.#batches.values()].filter((batch) => batch.holder === holder && isOpenBatch(batch));
  }

  async endedBeyond(holder: ClientText, count: number): Promise<readonly StoredBatch[]> {
    const all = [...this.#batches.values()].filter((batch) => batch.holder === holder);
    const older = all.slice(0, Math.max(0, all.length - count));
    return older.filter((batch) => !isOpenBatch(batch)).slice(0, endedAtOnce);
  }

  async cancelBatch(id: string, at: number): Promise<void> {
    const batch = this.#batches.get(id);
    if (batch !== undefined && isOpenBatch(batch)) this.#batches.set(id, { ...batch, cancelAt: batch.cancelAt ?? at });
  }

  async removeBatch(id: string): Promise<void> {
    this.#batches.delete(id);
  }

  async leaseBatches(): Promise<readonly StoredBatch[]> {
    return [...this.#batches.values()].filter(isOpenBatch);
  }

  async advance(id: string, progress: BatchState, results: readonly Appended[]): Promise<number | null | 'lost'> {
    const batch = this.#batches.get(id);
    if (batch === undefined) return 'lost';
    for (const { id: file, data } of results) this.#append(file, data);
    this.#batches.set(id, { ...batch, progress });
    return batch.cancelAt;
  }

  get clients(): ClientText[] {
    return [...[...this.#files.values()].map(({ file }) => file), ...this.#batches.values()].map(
      ({ client }) => client,
    );
  }

  /** Removes the files and batches of a client. Returns their number. */
  removeOf(client: ClientText): number {
    const files = [...this.#files.values()].filter(({ file }) => file.client === client);
    for (const { file } of files) this.#remove(file);
    const batches = [...this.#batches.values()].filter((batch) => batch.client === client);
    for (const { id } of batches) this.#batches.delete(id);
    return files.length + batches.length;
  }
}

function filesOf({ inputFile, outputFile, errorFile }: StoredBatch): (string | null)[] {
  return [inputFile, outputFile, errorFile];
}

/** Returns a page of entries, which are in the order of their creation. An unknown `after` leaves an empty page. */
function pageOf<T extends { readonly id: string }>(
  entries: readonly T[],
  { after, limit, isAscending }: PageOrder,
): StoredPage<T> {
  const ordered = isAscending ? entries : entries.toReversed();
  const at = after === null ? -1 : ordered.findIndex(({ id }) => id === after);
  const following = after !== null && at < 0 ? [] : ordered.slice(at + 1);
  return { items: following.slice(0, limit), hasMore: following.length > limit };
}
