import type { StoreTable } from '../../primary/store/contract/store-table.js';
import type { TableRow } from '../stores/contract/tables.js';

/** A notice to a receiver, and the attempts to deliver it. `nextAt` is the time of the next attempt. */
export interface Delivery extends TableRow {
  /** URL of the receiver; null for the receiver in the configuration, whose URL may be a secret. */
  readonly url: string | null;
  readonly type: string;
  /** The notice as JSON, the same for each attempt; empty when the delivery has ended. */
  readonly body: string;
  readonly status: 'pending' | 'delivered' | 'failed';
  readonly attempts: number;
  /** Time of the last attempt; null before the first one. */
  readonly attemptedAt: number | null;
  /** Why the last attempt has failed; null if it has not. */
  readonly error: string | null;
}

/** Table of the deliveries. Others than those about jobs are about budgets, quotas and logins. */
export const deliveryTable = {
  name: 'deliveries',
  rowName: 'delivery',
  keepMs: 40 * 86_400_000, // longer than a month, so that no budget is reported twice in one
  byClients: { field: 'type', value: 'job.ended', max: 800, maxOfHolder: 100 },
  maxOthers: 200,
} as const satisfies StoreTable;
