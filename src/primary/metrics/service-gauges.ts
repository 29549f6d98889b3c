import type { Registry } from 'prom-client';
import type { Config } from '../../shared/config/config.js';
import type { Phase } from '../../shared/phase.js';
import type { Shelf } from '../cli/shelf.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { Fleet } from '../fleet/fleet.js';
import type { SlotQueue } from '../jobs/slot-queue.js';
import { addCounter, addFacts, addGauges, addLabelledGauge } from './state-metrics.js';

export interface GaugeSources {
  readonly config: Config;
  readonly product: { readonly version: string; readonly commit: string | null };
  readonly adapter: string;
  readonly slots: SlotQueue;
  readonly conversations: ConversationStore;
  readonly fleet: Fleet;
  readonly shelf: Shelf;
  readonly phase: () => Phase;
  readonly logWriteErrors: () => number;
}

/** The state of the service, each figure read from its owner at a scrape. */
export function addServiceGauges(registry: Registry, sources: GaugeSources): void {
  const { config, product, slots, conversations, fleet, phase } = sources;
  addGauges(registry, {
    jobs_active: ['Jobs that hold a slot.', () => slots.active],
    jobs_queued: ['Jobs that wait for a slot.', () => slots.waiting],
    jobs_limit: ['Slots.', () => slots.limits.maxActive],
    queue_limit: ['Places in the queue.', () => slots.limits.maxWaiting],
    conversations: ['Conversations held in memory.', () => conversations.counts.conversations],
    conversation_bytes: ['Text held by all conversations, bytes.', () => conversations.counts.bytes],
    conversation_tokens: ['Tokens of all conversations, estimated.', () => conversations.counts.tokens],
    draining: ['1 while the service drains.', () => (phase() === 'draining' ? 1 : 0)],
  });
  addCounter(registry, 'log_write_errors_total', 'Log records that could not be written.', sources.logWriteErrors);
  addLabelledGauge(registry, 'workers', 'HTTP workers, by what they are doing.', 'state', () => fleet.counts());
  const processes = 'Processes of the model CLI, by what they are doing.';
  addLabelledGauge(registry, 'cli_processes', processes, 'state', () => sources.shelf.counts());
  addFacts(registry, 'build_info', 'What is running; always 1.', {
    version: product.version,
    commit: product.commit ?? 'unknown',
    node_version: process.version,
  });
  addFacts(registry, 'config_info', 'How it is configured; always 1.', {
    workers: String(config.workers),
    adapter: sources.adapter,
    strict_health: String(config.strictHealth),
  });
}
