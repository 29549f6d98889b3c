import { lstatSync } from 'node:fs';
import { StoreFault } from '../contract/store.js';

interface HeldFile {
  readonly path: string;
  readonly dev: number;
  readonly ino: number;
}

/**
 * Owns which files SQLite has open. It goes on with a file that was deleted or moved away, and nothing of what it then
 * keeps outlives the process. Used in the thread of the store alone, which waits for the disk anyway.
 */
export class HeldFiles {
  readonly #files: readonly HeldFile[];

  /** Those that are at these paths now. */
  constructor(paths: readonly string[]) {
    this.#files = paths.map((path) => {
      const { dev, ino } = lstatSync(path);
      return { path, dev, ino };
    });
  }

  /** Throws a StoreFault where one of them is no longer in its place. */
  check(): void {
    for (const { path, dev, ino } of this.#files) {
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (found?.dev !== dev || found.ino !== ino) throw new StoreFault(`${path} was deleted or replaced`);
    }
  }
}
