import type { Counter, Registry } from 'prom-client';
import { type RemovalCause, removalCauses } from '../../shared/conversation.js';
import { counter } from '../../shared/metrics/families.js';
import { addCounter } from './state-metrics.js';

/** Owns what is counted of conversations that came and went. */
export class ConversationMetrics {
  readonly #removed: Counter<'cause'>;

  constructor(registry: Registry, created: () => number) {
    addCounter(registry, 'conversations_created_total', 'Conversations whose first turn was answered.', created);
    this.#removed = counter(registry, 'conversations_removed_total', 'Conversations that are gone, by cause.', 'cause');
    for (const cause of removalCauses) this.#removed.inc({ cause }, 0);
  }

  removed(cause: RemovalCause): void {
    this.#removed.inc({ cause });
  }
}
