import { access, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { replaceFile } from '../../shared/replace-file.js';

/** Remembers when the service was started first: in a file if there is a state folder, else only this start. */
export class FirstStart {
  readonly #path: string | null;
  /** Time of the first start, milliseconds since the epoch. */
  ms: number;

  constructor(path: string | null, nowMs: number) {
    this.#path = path;
    this.ms = nowMs;
  }

  /**
   * Reads the file, or writes it at the first start. If the state folder does not exist or allows no access, this start
   * counts: no folder is created for a date alone.
   */
  async load(): Promise<void> {
    if (this.#path === null) return;
    const storedMs = Date.parse((await readFile(this.#path, 'utf8').catch(() => '')).trim());
    if (!Number.isNaN(storedMs)) this.ms = storedMs;
    else await this.#store(this.#path).catch(() => {});
  }

  async #store(path: string): Promise<void> {
    await access(dirname(path));
    await replaceFile(path, `${new Date(this.ms).toISOString()}\n`);
  }
}
