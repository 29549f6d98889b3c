import { holderOf, readClientId } from '../../shared/client.js';

const maxKeys = 200;
const maxUsers = 50;

/** The label of all clients that have none of their own: addresses, and keys and users that are too many. */
export const restLabel = 'other';

/** Owns which clients have a label of their own. One that has it keeps it, so that no counter falls. */
export class ClientLabels {
  readonly #labels = { key: new Set<string>(), user: new Set<string>() };

  /** The label, and whether nobody has had it before. */
  of(client: string): { readonly label: string; readonly isNew: boolean } {
    const { kind, name } = readClientId(holderOf(client));
    if (kind !== 'key' && kind !== 'user') return { label: restLabel, isNew: false };
    const labels = this.#labels[kind];
    if (labels.has(name)) return { label: name, isNew: false };
    if (labels.size >= (kind === 'key' ? maxKeys : maxUsers)) return { label: restLabel, isNew: false };
    labels.add(name);
    return { label: name, isNew: true };
  }

  get all(): string[] {
    return [...new Set([restLabel, ...this.#labels.key, ...this.#labels.user])];
  }
}
