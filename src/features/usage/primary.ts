import type { PrimaryCore, PrimaryPart, Spender } from '../../primary/features/feature.js';
import type { Counts } from '../../primary/store/contract/store.js';
import {
  type ClientText,
  isOfClient,
  optionHolder,
  readClientId,
  type UsageName,
  writeClientId,
} from '../../shared/client.js';
import { contained } from '../../shared/contained.js';
import { ignoreFailure } from '../../shared/errors.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { type StoringCore, usingStore } from '../stores/contract/full-store.js';
import { UsageJournal } from './journal.js';
import { UsageLedger } from './ledger.js';
import { type AddedNames, RecentUsage, type UsageCounter } from './recent-usage.js';
import type { ReportOrder } from './report.js';
import type { UsageReport } from './report-form.js';
import type { calls } from './shared.js';

/** How often the usage of this day, week and month is refreshed from a store that several hosts share. */
const refreshMs = 5000;

/** Creates the part that counts what clients have used. */
export const createUsage = usingStore((core) => new UsagePart(core));

/** Returns the usage of the service, for features that come later in the list. */
export function usageOf({ earlierParts }: Pick<PrimaryCore, 'earlierParts'>): UsagePart {
  const part = earlierParts.find((each) => each instanceof UsagePart);
  if (part === undefined) throw new Error('the usage must come earlier in the list of features');
  return part;
}

export class UsagePart implements PrimaryPart {
  /** What clients have used in this day, week and month. */
  readonly recent: RecentUsage;
  readonly job: Readonly<Record<'attemptEnded' | 'jobEnded', UsageCounter['jobEnded']>>;
  readonly handlers: Handlers<typeof calls>;
  readonly #core: StoringCore;
  readonly #ledger: UsageLedger;
  readonly #journal: UsageJournal;
  readonly #counter: UsageCounter;
  readonly #addedNames: AddedNames[] = [];

  constructor(core: StoringCore) {
    const { clock } = core.host;
    this.#core = core;
    this.recent = new RecentUsage(clock, (client) => core.clients.formerClientsOf(client));
    this.#ledger = new UsageLedger(clock);
    this.#journal = new UsageJournal(this.#ledger, core.store.usage, clock);
    if (core.config.store.kind !== 'memory') this.#journal.awaitRestore();
    this.#counter = this.recent.combineUsage(this.#ledger, (...job) => this.#namesOf(...job));
    const count: UsageCounter['jobEnded'] = (request, end, bill) => this.#counter.jobEnded(request, end, bill);
    this.job = { attemptEnded: count, jobEnded: count };
    this.handlers = { usage: async (order) => ({ text: JSON.stringify(await this.#reportTo(order)) }) };
  }

  /** Reports the stored usage of a client; with null, of all clients. Rejects with `store_unavailable`. */
  async report(client: ClientText | null, order: ReportOrder) {
    return this.#journal.report(client, order);
  }

  /** Returns the model that last answered for a requested model; empty if none is known. */
  answeringModel(requested: string): string {
    return this.#ledger.answeringModel(requested);
  }

  /** Also counts what a job has spent under the names that `namesOf` returns. Reports leave them out. */
  countAlso(namesOf: AddedNames): void {
    this.#addedNames.push(namesOf);
  }

  #namesOf(request: Spender, models: readonly string[]): readonly UsageName[] {
    const names = new Set<UsageName>();
    const add = (namesOf: AddedNames) => {
      for (const name of namesOf(request, models)) names.add(name);
    };
    const addSafely = contained(add, this.#core.host.defects.record);
    for (const namesOf of this.#addedNames) addSafely(namesOf);
    return [...names];
  }

  async #reportTo({ client, scopes, ...order }: Parameters<Handlers<typeof calls>['usage']>[0]): Promise<UsageReport> {
    this.#core.host.heap.touch();
    const isAdmin = scopes?.includes('admin') === true;
    const usage = await this.report(isAdmin ? null : client, order);
    const { kind, name } = readClientId(optionHolder(client));
    const budgets = [...this.#core.limitUsesOf(isAdmin ? null : client)];
    return { caller: { client: name, kind, scopes }, usage, budgets };
  }

  countRefusal(client: ClientText): void {
    this.#counter.countRefusal(client);
  }

  async restored(): Promise<void> {
    await this.#journal.restoreUsage();
    // a shared store may be reachable only later, and the next refresh repeats this, and records a defect
    await this.recent.refreshUsage(this.#journal).catch(() => {});
  }

  start(): void {
    this.#journal.startSaving();
    const refresh = () => void this.recent.refreshUsage(this.#journal).catch(ignoreFailure); // the store logs its failures
    if (this.#core.store.usage.report !== null) this.#core.host.clock.every(refreshMs, refresh);
  }

  async clientsWith(owner: ClientText): Promise<readonly ClientText[]> {
    const order = { since: null, until: null, groups: ['client'], hasGroupUsage: true } as const;
    const rows = await this.report(null, order);
    return rows
      .map(({ kind = 'other', client = '' }) => writeClientId({ kind, name: client }))
      .filter(isOfClient(owner));
  }

  /** Pending usage would otherwise be written after the removal. */
  flush(): Promise<void> {
    return this.#journal.saveUsage();
  }

  async purgeClient(client: ClientText): Promise<Counts> {
    await this.flush();
    return { usage: this.#ledger.forget(client) };
  }

  stop(): Promise<void> {
    return this.#journal.closeJournal();
  }
}
