import { readFile } from 'node:fs/promises';
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

  /** Reads the file, or writes it at the first start. Without access to the file, this start counts. */
  async load(): Promise<void> {
    if (this.#path === null) return;
    const storedMs = Date.parse((await readFile(this.#path, 'utf8').catch(() => '')).trim());
    if (!Number.isNaN(storedMs)) this.ms = storedMs;
    else await replaceFile(this.#path, `${new Date(this.ms).toISOString()}\n`).catch(() => {}); // read-only folder
  }
}
