import { holderOf } from '../../shared/client.js';

/**
 * Owns whether more than one client has asked this service since its start. What only the requests of one client show
 * of a model CLI may be that client's own doing: it stops no job of another.
 */
export class SeenClients {
  #first: string | null = null;
  #areMany = false;

  /** This client asks for a job, whatever becomes of it. Returns whether it is the second one. */
  saw(client: string): boolean {
    if (this.#areMany) return false;
    const holder = holderOf(client);
    this.#first ??= holder;
    this.#areMany = holder !== this.#first;
    return this.#areMany;
  }

  /** Whether failures of these clients may count against all: they are two, or no other has ever asked. */
  mayAccuse(client: string, other = client): boolean {
    return !this.#areMany || holderOf(client) !== holderOf(other);
  }
}
