import { type FSWatcher, watch } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { type Clock, delay, endOfLoopTurn, type StopTimer } from '../../shared/clock.js';
import { budgetFaults, readKeysFileInSlices } from '../../shared/config/keys-file.js';
import type { Logger } from '../../shared/log/logger.js';
import { type Clients, sameKeys } from './clients.js';

/** The watch over the keys file, not started yet; null where none is configured. `onChange` is called for other keys. */
export function watchKeysFile(
  path: string | null,
  clients: Clients,
  onChange: () => void,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  reportsCost: boolean,
): WatchedFile | null {
  return path === null ? null : new WatchedFile(path, keysListener(clients, onChange, log, reportsCost), clock);
}

/** Puts the keys of the keys file in force. A file with any fault leaves the keys as they are. */
export function keysListener(clients: Clients, onChange: () => void, log: Logger, reportsCost: boolean): FileListener {
  let isBroken = false;
  const refuse = (fault: string) => {
    isBroken = true;
    log.error('keys_rejected', { error: fault });
  };
  return {
    read: async (text) => {
      const { keys, faults: own } = await readKeysFileInSlices(text, clients.fixed, endOfLoopTurn);
      const faults = reportsCost ? own : [...own, ...budgetFaults(keys)];
      if (faults.length > 0) return refuse(faults.join('; '));
      const hasChanged = !(await sameKeys(keys, clients.named, endOfLoopTurn));
      if (hasChanged) {
        clients.replaceNamed(keys);
        onChange();
      }
      if (hasChanged || isBroken) log.info('keys_loaded', { keys: clients.count });
      isBroken = false;
    },
    unreadable: ({ message }) => refuse(message),
  };
}

/** Where the system tells of no change, as on a network share, one is seen this late. */
const pollMs = 500;
/** Many editors empty a file before they write it: what is read has been left alone for this long. */
const settleMs = 50;
const maxSettles = 4;

export interface FileListener {
  /** The text that the file has now. Called for each change, and for what is found at the start; never before the call before has ended. */
  read(text: string): unknown;
  /** The file can't be read. Called once until that changes. */
  unreadable(error: Error): void;
}

/** Owns the watch over one small file, which may be replaced, removed and made again. */
export class WatchedFile {
  readonly #path: string;
  readonly #listener: FileListener;
  readonly #clock: Clock;
  #watcher: FSWatcher | null = null;
  #stopPolling: StopTimer = () => {};
  /** What the file looked like when it was read last. */
  #known = '';
  #looking: Promise<void> | null = null;

  constructor(path: string, listener: FileListener, clock: Clock) {
    this.#path = path;
    this.#listener = listener;
    this.#clock = clock;
  }

  start(): void {
    this.#watcher = this.#watchFolder();
    this.#stopPolling = this.#clock.every(pollMs, () => void this.look());
    void this.look();
  }

  stop(): void {
    this.#stopPolling();
    this.#watcher?.close();
  }

  /** Reads the file if it looks other than before. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  /** Reads the file in any case. */
  async reread(): Promise<void> {
    await this.#looking;
    this.#known = '';
    await this.look();
  }

  async #look(): Promise<void> {
    let looks = await looksOf(this.#path);
    if (looks === this.#known) return;
    for (let settles = 0; settles < maxSettles; settles++) {
      await delay(this.#clock, settleMs);
      const before = looks;
      looks = await looksOf(this.#path);
      if (looks === before) break;
    }
    this.#known = looks;
    await readFile(this.#path, 'utf8').then(
      (text) => this.#listener.read(text),
      (error: Error) => this.#listener.unreadable(error),
    );
  }

  /** The folder, because a file that is replaced is another one. Null where the system has no watch left. */
  #watchFolder(): FSWatcher | null {
    const name = basename(this.#path);
    try {
      const watcher = watch(dirname(this.#path), { persistent: false }, (_, changed) => {
        if (changed === null || changed === name) void this.look();
      });
      return watcher.on('error', () => watcher.close()); // the poll goes on
    } catch {
      return null;
    }
  }
}

/** Whatever changes with the file's content, as far as can be seen without reading it. */
async function looksOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}
