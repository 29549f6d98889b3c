/**
 * Names of the stored entries. If the format of an entry changes, its name must change: a tab may outlive an update.
 */
const names = ['draft-1', 'turns-3'] as const;
type RememberedName = (typeof names)[number];

const entryOf = (name: RememberedName) => `prompt-relay-${name}`;

/**
 * Stores what a browser tab restores after a reload, except its key. All of it is removed when the tab closes or the
 * user removes the key.
 */
export class TabMemory {
  readonly #storage: Storage;
  #isForgotten = false;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Returns null if nothing is stored. */
  recall<T>(name: RememberedName): T | null {
    try {
      return JSON.parse(this.#storage.getItem(entryOf(name)) ?? 'null') as T | null;
    } catch {
      return null; // another page of the same origin may have written the entry
    }
  }

  /** Replaces the entry by the first of these values that fits into the storage. Removes the entry if no value fits. */
  remember(name: RememberedName, ...values: readonly object[]): void {
    this.#storage.removeItem(entryOf(name));
    if (!this.#isForgotten) values.some((value) => this.#isStored(name, value));
  }

  /** Removes all entries, and stores nothing until the page is loaded again. */
  forget(): void {
    this.#isForgotten = true;
    for (const name of names) this.#storage.removeItem(entryOf(name));
  }

  #isStored(name: RememberedName, value: object): boolean {
    try {
      this.#storage.setItem(entryOf(name), JSON.stringify(value));
      return true;
    } catch {
      return false; // a browser limits the storage of an origin to a few megabytes
    }
  }
}
