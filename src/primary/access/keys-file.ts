import { type FSWatcher, watch } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Clock, delay, type StopTimer, yieldToEventLoop } from '../../shared/clock.js';
import { budgetFaults, readKeysFileInSlices } from '../../shared/config/keys-file.js';
import type { Logger } from '../../shared/log/logger.js';
import { type Clients, sameKeys } from './clients.js';

/**
 * Creates the watch of the keys file, which is not started yet; null if no keys file is configured. `onChange` is
 * called when the keys have changed.
 */
export function watchKeysFile(
  path: string | null,
  clients: Clients,
  onChange: () => void,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  reportsCost: boolean,
): WatchedFile | null {
  return path === null ? null : new WatchedFile(path, keysListener(clients, onChange, log, reportsCost), clock);
}

/** Applies the keys of the keys file. A file with any fault leaves the keys unchanged. */
export function keysListener(clients: Clients, onChange: () => void, log: Logger, reportsCost: boolean): FileListener {
  let isBroken = false;
  const refuse = (fault: string) => {
    isBroken = true;
    log.error('keys_rejected', { error: fault });
  };
  return {
    read: async (text): Promise<void> => {
      const content = await readKeysFileInSlices(text, clients.fixedKeys, yieldToEventLoop);
      const { keys, budgets, personLines } = content;
      const faults = reportsCost ? content.faults : [...content.faults, ...budgetFaults(content)];
      if (faults.length > 0) return void refuse(faults.join('; '));
      const hasSameLines =
        isDeepStrictEqual(budgets, clients.sharedBudgets) && isDeepStrictEqual(personLines, clients.personLines);
      const hasChanged = !hasSameLines || !(await sameKeys(keys, clients.namedKeys, yieldToEventLoop));
      if (hasChanged) {
        clients.replaceNamedKeys(content);
        onChange();
        for (const warning of nameWarnings(clients)) log.warn('config_warning', { warning });
      }
      if (hasChanged || isBroken) log.info('keys_loaded', { keys: clients.keyCount });
      isBroken = false;
    },
    unreadable: ({ message }) => refuse(message),
  };
}

/** Returns warnings about keys that were made over HTTP and have the name of a key of the operator. */
export function nameWarnings({ namesakes }: Pick<Clients, 'namesakes'>): string[] {
  return namesakes.map(
    ({ name, client }) =>
      `MODEL_API_KEYS_FILE: a key that was made over HTTP has the name ${name}, too. It is another client, ${client}.`,
  );
}

/** Polling interval, for systems without change notifications, such as a network share. */
const pollMs = 500;
/** Time that a file must be unchanged before it is read: many editors empty a file before they write it. */
const settleMs = 50;
const maxSettles = 4;

export interface FileListener {
  /** Called with the text of the file at the start and after each change. Calls never overlap. */
  read(text: string): unknown;
  /** Called once when the file becomes unreadable. */
  unreadable(error: Error): void;
}

/** Watches one small file, which may be replaced, removed and created again. */
export class WatchedFile {
  readonly #path: string;
  readonly #listener: FileListener;
  readonly #clock: Clock;
  readonly #read: (path: string) => Promise<string>;
  #watcher: FSWatcher | null = null;
  #stopPolling: StopTimer = () => {};
  /** Metadata of the file, or the code of the error, when the file was last read. */
  #known = '';
  #looking: Promise<void> | null = null;

  constructor(
    path: string,
    listener: FileListener,
    clock: Clock,
    read = (path: string): Promise<string> => readFile(path, 'utf8'),
  ) {
    this.#path = path;
    this.#read = read;
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

  /** Reads the file if its metadata have changed. */
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
    await this.#read(this.#path)
      .then((text) => this.#listener.read(text))
      .catch((error: Error) => this.#listener.unreadable(error));
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

/** Returns metadata that change with the content of the file, or the code of the error. */
async function looksOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}
