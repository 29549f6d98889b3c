import { isDeepStrictEqual } from 'node:util';
import type { ClientGroup } from '../../primary/access/client-groups.js';
import type { PrimaryCore } from '../../primary/features/feature.js';
import { holderOf, type LimitKind, readClientId, spendersOf } from '../../shared/client.js';
import { wholeService } from '../../shared/config/api-keys.js';
import { type Budget, budgetIn } from './options.js';

/** A budget, with those whose usage counts for it. */
export interface LimitedUse extends Budget {
  /** Whether its line in the keys file has a fault, so that the requests that it limits are refused. */
  readonly isClosed?: true;
  /** Name in reports: of a key or a person, `@` and the name of a group, or `@*` for the whole service. */
  readonly name: string;
  readonly kind: LimitKind;
  /** Clients whose usage counts, and the usage of a group; null for all clients. See `spendersOf`. */
  readonly holders: readonly string[] | null;
}

type LimitedClients = Pick<PrimaryCore['clients'], 'groups' | 'groupsOf' | 'keysAndPeople' | 'ownOptionsOf'>;

/** Finds the budgets in the options of keys, people and groups. */
export class LimitedUses {
  readonly #clients: LimitedClients;
  /** Budgets of groups. A changed keys file has new groups. */
  readonly #ofGroups = new WeakMap<ClientGroup, LimitedUse>();

  constructor(clients: LimitedClients) {
    this.#clients = clients;
  }

  /** All budgets: those that several clients share, then those of keys and of people who have sent a request lately. */
  get all(): LimitedUse[] {
    const { groups, keysAndPeople } = this.#clients;
    return [
      ...Array.from(groups, (group) => this.#useOfGroup(group)),
      ...[...keysAndPeople].flatMap((client) => this.#useOf(client)),
    ];
  }

  /**
   * Returns the budgets that limit a client: of its key, of the person, of the group of its key, of these groups, and of
   * the whole service. By default, the groups are those of its last request.
   */
  of(client: string, groups?: readonly string[]): LimitedUse[] {
    return [
      ...spendersOf(client)
        .toReversed()
        .flatMap((spender) => this.#useOf(spender)),
      ...this.#clients.groupsOf(client, groups).map((group) => this.#useOfGroup(group)),
    ];
  }

  /** Returns the budget of a key or a person in an array; an empty array if it has none, or only that of its holder. */
  #useOf(client: string): LimitedUse[] {
    const options = this.#clients.ownOptionsOf(client);
    const { tokens, costUsd } = budgetIn(options);
    const isUnlimited = tokens === null && costUsd === null;
    const holder = holderOf(client) === client ? null : budgetIn(this.#clients.ownOptionsOf(holderOf(client)));
    if (isUnlimited || (holder !== null && isDeepStrictEqual({ tokens, costUsd }, holder))) return [];
    const { kind, name } = readClientId(client); // each job needs it, and a spread would take microseconds
    return [{ kind, name, tokens, costUsd, holders: [client] }];
  }

  #useOfGroup(group: ClientGroup): LimitedUse {
    const known = this.#ofGroups.get(group);
    if (known !== undefined) return known;
    const { name, holders, isClosed } = group;
    const kind = name === wholeService ? 'service' : 'group';
    const use = { ...budgetIn(group), ...(isClosed && { isClosed }), kind, name: `@${name}`, holders } as const;
    this.#ofGroups.set(group, use);
    return use;
  }
}
