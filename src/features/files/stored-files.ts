import { inLines } from '../../shared/async.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { invalid, RelayError, storingIsOff } from '../../shared/errors.js';
import { type FilePurpose, type FileView, type PageOrder, uploadPurposes } from '../../shared/files.js';
import { newId } from '../../shared/ids.js';
import type { FileStore, FileUsage, StoredBatch, StoredFile } from '../stores/contract/files.js';
import { commonLimits, type FileValues } from './shared.js';

/** File that a client uploads, or that a batch writes. */
export interface NewFile extends Pick<FileView, 'purpose' | 'name' | 'mediaType'> {
  readonly client: ClientText;
}

/** Upload that has all its bytes. A form may name the purpose of a file behind the file. */
interface WholeUpload extends Pick<FileView, 'id' | 'purpose' | 'lines'> {
  readonly client: ClientText;
  readonly ttlMs: number | null;
}

/** Applies the limits of files. All methods reject with `not_found` if the client has no such file. */
export class StoredFiles {
  readonly #store: FileStore;
  readonly #settings: FileValues;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #mayStore: (client: ClientText) => boolean;
  /** Uploads of one key holder store their pieces one after the other, so that they cannot exceed the limit together. */
  readonly #inLineOf = inLines();

  constructor(
    store: FileStore,
    settings: FileValues,
    clock: Pick<Clock, 'now'>,
    mayStore: (client: ClientText) => boolean = () => true,
  ) {
    this.#store = store;
    this.#mayStore = mayStore;
    this.#settings = settings;
    this.#clock = clock;
  }

  /** Whether this service stores files, which batches need. */
  get isOn(): boolean {
    return this.#settings.MODEL_API_FILES !== 'off';
  }

  /** Longest life of a file, and of the results of a batch. */
  get ttlMs(): number {
    return commonLimits(this.#settings, this.#store.isDurable).ttlMs;
  }

  /** Throws `not_found` if this service stores no files. */
  checkOn(): void {
    if (!this.isOn) throw new RelayError('not_found', 'this service stores no files (MODEL_API_FILES is off)');
  }

  /** Returns why the holder of these files may have no further bytes; null if it may. */
  #findRoomFault({ bytes, othersBytes = 0 }: FileUsage, added: number): RelayError | null {
    const { MODEL_API_FILES_MB: maxBytes } = this.#settings;
    const common = commonLimits(this.#settings, this.#store.isDurable);
    // Each client leaves as much as it takes, so that none can take all.
    const share = (common.bytes - othersBytes) / 2;
    if (bytes + added <= Math.min(maxBytes, share)) return null;
    const limit =
      share < maxBytes
        ? `half of the memory that other clients leave of ${common.bytes} bytes: delete some, or set MODEL_API_STORE`
        : `${maxBytes} bytes (MODEL_API_FILES_MB): delete some`;
    return new RelayError('payload_too_large', `the files of this client would exceed ${limit}`);
  }

  /** Adds a file without bytes. Returns its id. Rejects with `validation_error` if the client has too many files, and with `forbidden`. */
  async createFile({ client, purpose, name, mediaType }: NewFile): Promise<string> {
    this.checkOn();
    if (!this.#mayStore(client)) throw storingIsOff('files');
    const holder = holderOf(client);
    const { MODEL_API_MAX_FILES: maxFiles } = this.#settings;
    const { ttlMs } = this;
    return this.#inLineOf(holder, async () => {
      const { files } = await this.#store.usageOf(holder);
      if (files >= maxFiles)
        throw invalid('file', `this client already has ${files} files, and may have ${maxFiles} (MODEL_API_MAX_FILES)`);
      const createdAt = this.#clock.now();
      const id = `file-${newId()}`;
      const times = { createdAt, expiresAt: createdAt + ttlMs };
      const size = { bytes: 0, lines: 0, isWhole: false };
      await this.#store.createFile({ id, client, holder, purpose, name, mediaType, ...size, ...times });
      return id;
    });
  }

  /** Adds bytes to an upload. Rejects with `payload_too_large` if the client exceeds its bytes. */
  appendPiece(id: string, client: ClientText, data: Buffer): Promise<void> {
    const holder = holderOf(client);
    return this.#inLineOf(holder, async () => {
      if (!this.#mayStore(client)) throw storingIsOff('files');
      if ((await this.#store.findFile(id, client))?.isWhole !== false) throw noSuchFile();
      const fault = this.#findRoomFault(await this.#store.usageOf(holder), data.length);
      if (fault !== null) throw fault;
      await this.#store.appendPieces([{ id, data }]);
    });
  }

  /** Rejects with `payload_too_large` if the files of a client have no room for these bytes. */
  async checkRoom(client: ClientText, bytes: number): Promise<void> {
    const fault = this.#findRoomFault(await this.#store.usageOf(holderOf(client)), bytes);
    if (fault !== null) throw fault;
  }

  /** Whether the files of a client are below their limits of bytes. */
  async hasRoom(client: ClientText): Promise<boolean> {
    return this.#findRoomFault(await this.#store.usageOf(holderOf(client)), 1) === null;
  }

  /** Ends an upload. `ttlMs`: time until the file expires; null for the longest one. */
  async completeFile({ id, client, purpose, lines, ttlMs }: WholeUpload): Promise<FileView> {
    const { ttlMs: longestMs } = this;
    const file = await this.#store.findFile(id, client);
    if (file === null) throw noSuchFile();
    const expiresAt = file.createdAt + Math.min(ttlMs ?? longestMs, longestMs);
    if (!(await this.#store.completeFile(id, { purpose, lines, expiresAt }))) throw noSuchFile();
    return this.findFile(id, client);
  }

  /** Finds a file that is whole. */
  async findFile(id: string, client: ClientText): Promise<FileView> {
    this.checkOn();
    const file = await this.#store.findFile(id, client);
    if (file === null || !file.isWhole) throw noSuchFile();
    if (file.expiresAt <= this.#clock.now() && (await this.#userOf(file)) === undefined) throw noSuchFile();
    return fileViewOf(file);
  }

  /** Reads a piece of a file, from this byte on; empty at its end. */
  async readPiece(id: string, client: ClientText, from: number): Promise<Buffer> {
    const { bytes } = await this.findFile(id, client);
    const piece = await this.#store.readPiece(id, from);
    if (piece.length === 0 && from < bytes) throw noSuchFile(); // removed during the read
    return piece;
  }

  async listFiles(order: PageOrder, purpose: FilePurpose | null): Promise<{ files: FileView[]; hasMore: boolean }> {
    this.checkOn();
    const purposes = purpose === null ? ([...uploadPurposes, 'batch_output'] as const) : [purpose];
    const { items, hasMore } = await this.#store.listFiles(order, purposes);
    return { files: items.map(fileViewOf), hasMore };
  }

  /** Removes a file, also one whose upload was broken. */
  async removeFile(id: string, client: ClientText): Promise<void> {
    this.checkOn();
    const file = await this.#store.findFile(id, client);
    if (file === null) throw noSuchFile();
    const user = await this.#userOf(file);
    if (user !== undefined) throw invalid('file_id', `is in use by ${user.id}, which has not ended`);
    await this.#store.removeFile(id);
  }

  /** Finds a batch that has not ended and needs this file. */
  async #userOf({ id, holder }: StoredFile): Promise<StoredBatch | undefined> {
    const open = await this.#store.openBatches(holder);
    return open.find(({ inputFile, outputFile, errorFile }) => [inputFile, outputFile, errorFile].includes(id));
  }
}

function fileViewOf({ client: _, holder: __, isWhole: ___, ...view }: StoredFile): FileView {
  return view;
}

function noSuchFile(): RelayError {
  return new RelayError('not_found', 'no such file');
}
