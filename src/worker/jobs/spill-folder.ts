import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../shared/log/logger.js';

const pieceBytes = 32 * 1024;

/** Makes the files that hold what is too long for memory. */
export class SpillFolder {
  readonly #path: string;
  readonly #log: Pick<Logger, 'warn'>;
  #isFailing = false;

  constructor(path: string, log: Pick<Logger, 'warn'>) {
    this.#path = path;
    this.#log = log;
  }

  /** A new file without a name, so that no other process can open it. Null if it can't be made. */
  async file(): Promise<SpillFile | null> {
    const path = join(this.#path, `prompt-relay-answer-${randomUUID()}`);
    try {
      const handle = await open(path, 'wx+', 0o600);
      await unlink(path);
      return new SpillFile(handle, this);
    } catch (error) {
      this.report(error);
      return null;
    }
  }

  /** Logs the first of several failures in a row: a full disk would be logged with every answer. Null is a success. */
  report(error: unknown): void {
    const { code = 'unknown' } = (error ?? {}) as NodeJS.ErrnoException;
    if (error !== null && !this.#isFailing) this.#log.warn('answer_not_spilled', { error: code });
    this.#isFailing = error !== null;
  }
}

/** Owns one file without a name, until it is closed. */
export class SpillFile {
  readonly #handle: FileHandle;
  readonly #folder: SpillFolder;
  #bytes = 0;

  constructor(handle: FileHandle, folder: SpillFolder) {
    this.#handle = handle;
    this.#folder = folder;
  }

  async length(): Promise<number> {
    return this.#bytes;
  }

  /** Returns whether all of it was written. Else the file is as it was before. */
  async append(bytes: Buffer): Promise<boolean> {
    try {
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await this.#handle.write(bytes, done, bytes.length - done, this.#bytes + done);
        done += bytesWritten;
      }
      this.#bytes += bytes.length;
      this.#folder.report(null);
      return true;
    } catch (error) {
      this.#folder.report(error);
      return false;
    }
  }

  /** All that was written, from the beginning. */
  async *pieces(): AsyncGenerator<Buffer> {
    for (let at = 0; at < this.#bytes; ) {
      const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, this.#bytes - at));
      const { bytesRead } = await this.#handle.read(piece, 0, piece.length, at);
      if (bytesRead === 0) throw new Error('a file has become shorter');
      yield piece.subarray(0, bytesRead);
      at += bytesRead;
    }
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
