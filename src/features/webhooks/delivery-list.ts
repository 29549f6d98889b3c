import { timestamp } from '../../shared/clock.js';
import type { Delivery } from './deliveries.js';
import type { DeliveryList } from './deliveries-body.js';
import { originOf } from './webhooks.js';

/** Returns the body of GET /webhooks/deliveries. `configured`: URL of the receiver in the configuration. */
export function deliveryList(deliveries: readonly Delivery[], configured: string | null): DeliveryList {
  const entries = deliveries.map(({ id, type, client, url, status, attempts, error, ...times }) => {
    const receiver = url ?? configured;
    return {
      ...{
        id,
        type,
        client: client || null,
        receiver: receiver === null ? null : originOf(receiver),
        status,
        attempts,
      },
      created_at: timestamp(times.createdAt),
      attempted_at: times.attemptedAt === null ? null : timestamp(times.attemptedAt),
      next_attempt_at: times.nextAt === null ? null : timestamp(times.nextAt),
      error,
    };
  });
  return { deliveries: entries };
}
