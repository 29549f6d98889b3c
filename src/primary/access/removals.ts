import { type ClientText, isOfClient } from '../../shared/client.js';
import { storeUnavailable } from '../../shared/errors.js';

interface ByClient {
  readonly client: ClientText;
}

/** Owns the set of clients whose data are being removed. Until that has ended, they start no job, and nothing of them is stored. */
export class Removals {
  readonly #running = new Map<symbol, (client: ClientText) => boolean>();

  /** Hooks that refuse the requests of these clients. */
  readonly part = {
    mayStore: (client: ClientText) => !this.isRemoving(client),
    job: { start: (request: ByClient) => this.#check(request), admit: (request: ByClient) => this.#check(request) },
    handlers: {},
  };

  /** Begins the removal of a client, its keys and its sub-clients. Dispose the result to end it. */
  beginRemoval(owner: ClientText): Disposable {
    const removal = Symbol(owner);
    this.#running.set(removal, isOfClient(owner));
    return { [Symbol.dispose]: () => void this.#running.delete(removal) };
  }

  isRemoving(client: ClientText): boolean {
    return [...this.#running.values()].some((isAmong) => isAmong(client));
  }

  #check({ client }: ByClient): void {
    if (this.isRemoving(client))
      throw storeUnavailable('the data of this client are being deleted: try again in a moment');
  }
}
