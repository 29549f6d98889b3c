import { type FSWatcher, watch } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { type Clock, delay, type StopTimer } from '../../shared/clock.js';

/** Polling interval, for systems without change notifications, such as a network share. */
const pollMs = 500;
/** Time that a file must be unchanged before it is read: many editors empty a file before they write it. */
const settleMs = 50;
const maxSettles = 4;
/** Time after which an unchanged file with a fault is read again: the cause may have passed, such as a full table of descriptors. */
const retryMs = 10_000;

export interface FileListener {
  /**
   * Called with the text of the file at the start and after each change. Calls never overlap. Resolves with whether the
   * text has no fault. `modifiedAt`: last change of the file in milliseconds since the epoch; null if it is unknown.
   */
  read(text: string, modifiedAt?: number | null): Promise<boolean>;
  /** Called for each failed attempt to read the file. */
  unreadable(error: Error): void;
}

/** Watches one small file, which may be replaced, removed and created again, and the files that it names. */
export class WatchedFile {
  readonly #path: string;
  readonly #listener: FileListener;
  readonly #clock: Clock;
  readonly #read: (path: string) => Promise<string>;
  readonly #namedFiles: () => readonly string[];
  #watcher: FSWatcher | null = null;
  #stopPolling: StopTimer = () => {};
  /** Metadata of the file, or the code of the error, when the file was last read. */
  #known = '';
  /** Time from which an unchanged file is read again (monotonic). */
  #retryAtMs = Number.POSITIVE_INFINITY;
  #looking: Promise<void> | null = null;

  /** `namedFiles`: paths of the files that the last text names. The text is read again if one of them changes. */
  constructor(
    path: string,
    listener: FileListener,
    clock: Clock,
    read = (path: string): Promise<string> => readFile(path, 'utf8'),
    namedFiles: () => readonly string[] = () => [],
  ) {
    this.#path = path;
    this.#namedFiles = namedFiles;
    this.#read = read;
    this.#listener = listener;
    this.#clock = clock;
  }

  startWatching(): void {
    this.#watcher = this.#watchFolder();
    this.#stopPolling = this.#clock.every(pollMs, () => void this.look());
    void this.look();
  }

  stopWatching(): void {
    this.#stopPolling();
    this.#watcher?.close();
  }

  /** Reads the file if its metadata have changed, or if it had a fault some time ago. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  /** Reads the file even if its metadata are unchanged. */
  async reread(): Promise<void> {
    await this.#looking;
    this.#known = '';
    await this.look();
  }

  async #looks(): Promise<Looks> {
    const [own, ...named] = await Promise.all([looksOf(this.#path), ...this.#namedFiles().map(looksOf)]);
    return { text: [own, ...named].map(({ text }) => text).join('\n'), modifiedAt: own.modifiedAt };
  }

  async #look(): Promise<void> {
    let looks = await this.#looks();
    if (looks.text === this.#known && this.#clock.monotonicMs() < this.#retryAtMs) return;
    for (let settles = 0; settles < maxSettles; settles++) {
      await delay(this.#clock, settleMs);
      const before = looks;
      looks = await this.#looks();
      if (looks.text === before.text) break;
    }
    this.#known = looks.text;
    const { modifiedAt } = looks;
    const isRight = await this.#read(this.#path)
      .then((text) => this.#listener.read(text, modifiedAt))
      .catch((error: Error) => {
        this.#listener.unreadable(error);
        return false;
      });
    this.#retryAtMs = isRight ? Number.POSITIVE_INFINITY : this.#clock.monotonicMs() + retryMs;
  }

  /** Watches the folder, because a replaced file is a new inode. Returns null if the system has no watch left. */
  #watchFolder(): FSWatcher | null {
    const name = basename(this.#path);
    try {
      const watcher = watch(dirname(this.#path), { persistent: false }, (_, changed) => {
        if (changed === null || changed === name) void this.look();
      });
      return watcher.on('error', () => watcher.close()); // polling still finds changes
    } catch {
      return null;
    }
  }
}

/** Metadata of files. */
interface Looks {
  /** Metadata that change with the content of the files, or the codes of errors. */
  readonly text: string;
  /**
   * Last change of the first file in milliseconds since the epoch; null without this file. A copy of the file has another
   * one, even if it keeps the time of the text.
   */
  readonly modifiedAt: number | null;
}

async function looksOf(path: string): Promise<Looks> {
  try {
    const { dev, ino, size, mtimeNs, ctimeMs, ctimeNs } = await stat(path, { bigint: true });
    return { text: [dev, ino, size, mtimeNs, ctimeNs].join(' '), modifiedAt: Number(ctimeMs) };
  } catch (error) {
    return { text: (error as NodeJS.ErrnoException).code ?? 'unknown', modifiedAt: null };
  }
}
