/** What is remembered; a change of its form needs another name, because a tab may outlive an update. */
const names = ['draft-1', 'turns-2'] as const;
type RememberedName = (typeof names)[number];

const entryOf = (name: RememberedName) => `prompt-relay-${name}`;

/** Owns what a browser tab remembers over a reload, beside its key. It goes with the tab, or with the key. */
export class TabMemory {
  readonly #storage: Storage;
  #isForgotten = false;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Null where nothing is remembered. */
  recall<T>(name: RememberedName): T | null {
    try {
      return JSON.parse(this.#storage.getItem(entryOf(name)) ?? 'null') as T | null;
    } catch {
      return null; // another page of the same origin may have written it
    }
  }

  /** Remembers the first of these values that there is room for, instead of what it remembered. None: nothing. */
  remember(name: RememberedName, ...values: readonly object[]): void {
    this.#storage.removeItem(entryOf(name));
    if (!this.#isForgotten) values.some((value) => this.#isStored(name, value));
  }

  /** Nothing is remembered any more, until the page is loaded again. */
  forget(): void {
    this.#isForgotten = true;
    for (const name of names) this.#storage.removeItem(entryOf(name));
  }

  #isStored(name: RememberedName, value: object): boolean {
    try {
      this.#storage.setItem(entryOf(name), JSON.stringify(value));
      return true;
    } catch {
      return false; // a browser gives a page a few megabytes
    }
  }
}
