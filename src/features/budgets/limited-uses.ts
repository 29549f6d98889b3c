import { isDeepStrictEqual } from 'node:util';
import type { ClientGroup } from '../../primary/access/client-groups.js';
import type { PrimaryCore } from '../../primary/features/feature.js';
import {
  type ClientText,
  groupUsage,
  holderOf,
  type LimitKind,
  modelUsage,
  readClientId,
  spendersOf,
  type UsageName,
} from '../../shared/client.js';
import { wholeService } from '../../shared/config/api-keys.js';
import { type Budget, budgetsIn } from './options.js';

/** A budget, with those whose usage counts for it. */
export interface LimitedUse extends Budget {
  /** Whether its line in the keys file has a fault, so that the requests that it limits are refused. */
  readonly isClosed?: true;
  /** Name in reports: of a key or a person, `@` and the name of a group, or `@*` for the whole service. */
  readonly name: string;
  readonly kind: LimitKind;
  /** Clients whose usage counts, and the usage of a group; null for all clients. See `spendersOf`. */
  readonly holders: readonly UsageName[] | null;
}

type LimitedClients = Pick<PrimaryCore['clients'], 'groups' | 'groupsOf' | 'keysAndPeople' | 'ownOptionsOf'>;

/** Finds the budgets in the options of keys, people and groups. */
export class LimitedUses {
  readonly #clients: LimitedClients;
  /** Returns the public name of a model that the keys file names. */
  readonly #resolve: (model: string) => string;
  /** Budgets of each group object. Each reading of a changed keys file makes new objects, so that no entry is stale. */
  readonly #ofGroups = new WeakMap<ClientGroup, readonly LimitedUse[]>();

  constructor(clients: LimitedClients, resolve = (model: string) => model) {
    this.#clients = clients;
    this.#resolve = resolve;
  }

  /** All budgets: those that several clients share, then those of keys and of people who have sent a request lately. */
  get all(): LimitedUse[] {
    const { groups, keysAndPeople } = this.#clients;
    return [
      ...[...groups].flatMap((group) => this.#usesOfGroup(group)),
      ...[...keysAndPeople].flatMap((client) => this.#usesOf(client)),
    ];
  }

  /**
   * Returns the budgets that limit a client: of its key, of the person, of the group of its key, of these groups, and of
   * the whole service. By default, the groups are those of its last request.
   */
  of(client: ClientText, groups?: readonly string[]): LimitedUse[] {
    return [
      ...spendersOf(client)
        .toReversed()
        .flatMap((spender) => this.#usesOf(spender)),
      ...this.#clients.groupsOf(client, groups).flatMap((group) => this.#usesOfGroup(group)),
    ];
  }

  /** Returns the budgets of a key or a person without those of its holder, and without one that limits nothing. */
  #usesOf(client: ClientText): LimitedUse[] {
    const holder = holderOf(client);
    const known = holder === client ? [] : budgetsIn(this.#clients.ownOptionsOf(holder));
    const isOwn = (budget: Budget) => !known.some((each) => isDeepStrictEqual(each, budget));
    const budgets = budgetsIn(this.#clients.ownOptionsOf(client)).filter(
      (budget) => (budget.tokens !== null || budget.costUsd !== null) && isOwn(budget),
    );
    if (budgets.length === 0) return [];
    const { kind, name } = readClientId(client);
    return budgets.map((budget) => ({ kind, name, ...budget, holders: this.#holdersOf([client], client, budget) }));
  }

  #usesOfGroup(group: ClientGroup): readonly LimitedUse[] {
    const known = this.#ofGroups.get(group);
    if (known !== undefined) return known;
    const { name, holders, isClosed } = group;
    const kind = name === wholeService ? 'service' : 'group';
    const uses = budgetsIn(group).map((budget): LimitedUse => {
      const counted = this.#holdersOf(holders, groupUsage(name), budget);
      return { ...budget, ...(isClosed && { isClosed }), kind, name: `@${name}`, holders: counted };
    });
    this.#ofGroups.set(group, uses);
    return uses;
  }

  /** Returns those whose usage counts. The usage of one model is counted under one name, for a group with all members. */
  #holdersOf<H>(holders: H, owner: UsageName, { model }: Budget): H | readonly UsageName[] {
    return model === undefined ? holders : [modelUsage(owner, this.#resolve(model))];
  }
}
