import { Counter, Gauge, type Registry } from 'prom-client';
import type { RemovalCause } from '../../shared/conversation.js';
import { removalCauses } from '../../shared/conversation.js';
import { metricPrefix } from '../../shared/metrics.js';

/** Reads a figure from its owner at the moment of a scrape. */
type Read = () => number;

/** A gauge for each figure that has an owner elsewhere: nothing is counted twice. */
export function addGauges(
  registry: Registry,
  gauges: Readonly<Record<string, readonly [help: string, read: Read]>>,
): void {
  for (const [name, [help, read]] of Object.entries(gauges)) {
    new Gauge({
      name: metricPrefix + name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  }
}

/** A counter for a figure that only grows and has an owner elsewhere. */
export function addCounter(registry: Registry, name: string, help: string, read: Read): void {
  new Counter({
    name: metricPrefix + name,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

/** A gauge with one label, read all at once. */
export function addLabelledGauge(
  registry: Registry,
  name: string,
  help: string,
  label: string,
  read: () => Readonly<Record<string, number>>,
): void {
  new Gauge({
    name: metricPrefix + name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      for (const [value, count] of Object.entries(read())) this.set({ [label]: value }, count);
    },
  });
}

/** A gauge that is always 1 and whose labels carry facts. */
export function addFacts(
  registry: Registry,
  name: string,
  help: string,
  facts: Readonly<Record<string, string>>,
): void {
  new Gauge({ name: metricPrefix + name, help, labelNames: Object.keys(facts), registers: [registry] }).set(facts, 1);
}

/** Owns what is counted of conversations that came and went. */
export class ConversationMetrics {
  readonly #removed: Counter<'cause'>;

  constructor(registry: Registry, created: Read) {
    addCounter(registry, 'conversations_created_total', 'Conversations whose first turn was answered.', created);
    this.#removed = new Counter({
      name: `${metricPrefix}conversations_removed_total`,
      help: 'Conversations that are gone, by cause.',
      labelNames: ['cause'],
      registers: [registry],
    });
    for (const cause of removalCauses) this.#removed.inc({ cause }, 0);
  }

  removed(cause: RemovalCause): void {
    this.#removed.inc({ cause });
  }
}
