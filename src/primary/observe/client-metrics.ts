import type { Counter, Registry } from 'prom-client';
import { holderOf, readClientId } from '../../shared/client.js';
import { type JobEnd, type JobRequest, outcomes } from '../../shared/job.js';
import { counter } from '../../shared/metrics.js';
import { addGauge } from './state-metrics.js';

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

/** Owns what is counted by client. The label is bounded, and never an address. */
export class ClientMetrics {
  readonly #labels = new ClientLabels();
  readonly #jobs: Counter<'client' | 'outcome'>;
  readonly #refused: Counter<'client'>;

  /** `waiting`: jobs that wait, by client. The keys of `keyNames` are there from the start. */
  constructor(registry: Registry, keyNames: readonly string[], waiting: () => ReadonlyMap<string, number>) {
    const jobs = 'Jobs that were admitted and have ended, by client: API keys, local users, and all others together.';
    this.#jobs = counter(registry, 'client_jobs_total', jobs, 'client', 'outcome');
    const refused = 'Jobs that were not admitted, by client.';
    this.#refused = counter(registry, 'client_refused_total', refused, 'client');
    const queued = () => this.#queued(waiting());
    addGauge(registry, 'client_jobs_queued', 'Jobs that wait for a slot, by client.', queued, 'client');
    this.#addZeros(restLabel);
    for (const name of keyNames) this.#labelOf(`key ${name}`);
  }

  jobEnded({ client }: JobRequest, { outcome }: JobEnd): void {
    this.#jobs.inc({ client: this.#labelOf(client), outcome });
  }

  refused(client: string): void {
    this.#refused.inc({ client: this.#labelOf(client) });
  }

  #labelOf(client: string): string {
    const { label, isNew } = this.#labels.of(client);
    if (isNew) this.#addZeros(label);
    return label;
  }

  #queued(waiting: ReadonlyMap<string, number>): Record<string, number> {
    const labelled = [...waiting].map(([client, count]) => [this.#labelOf(client), count] as const);
    const queued = Object.fromEntries(this.#labels.all.map((label) => [label, 0]));
    for (const [label, count] of labelled) queued[label] = (queued[label] ?? 0) + count;
    return queued;
  }

  #addZeros(client: string): void {
    this.#refused.inc({ client }, 0);
    for (const outcome of outcomes) this.#jobs.inc({ client, outcome }, 0);
  }
}
