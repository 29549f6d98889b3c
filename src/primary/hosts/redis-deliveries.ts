import { holderOf } from '../../shared/client.js';
import {
  type AddedDelivery,
  type Delivery,
  type DeliveryStore,
  deliveryTtlMs,
  jobNoticeType,
  maxJobNotices,
  maxOfClient,
  maxOperatorNotices,
} from '../store/contract/deliveries.js';
import type { RedisConnection } from './redis-connection.js';

/** Deliveries in Redis. Any host makes the attempts, each of them on one host. */
export class RedisDeliveries implements DeliveryStore {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async add(delivery: Delivery): Promise<AddedDelivery> {
    const { id, client, createdAt } = delivery;
    const isAboutJob = delivery.type === jobNoticeType;
    const share = isAboutJob ? holderOf(client) : '';
    const max = isAboutJob ? maxJobNotices : maxOperatorNotices;
    const limits = { before: createdAt - deliveryTtlMs, max, maxOfClient };
    const args = {
      id,
      client,
      share,
      createdAt,
      nextAt: delivery.nextAt ?? '',
      record: JSON.stringify(delivery),
      ...limits,
    };
    const { remaining } = await this.#redis.run('delivery', 'deliveries.addDelivery', args);
    const [isNew, dropped = 0] = remaining.map(Number);
    return { isNew: isNew === 1, dropped };
  }

  async take(now: number, until: number, limit: number): Promise<readonly Delivery[]> {
    const args = { at: now, untilTime: until, limit };
    return recordsIn(await this.#redis.run('delivery', 'deliveries.takeDeliveries', args));
  }

  async update(delivery: Delivery): Promise<void> {
    const args = { id: delivery.id, nextAt: delivery.nextAt ?? '', record: JSON.stringify(delivery) };
    await this.#redis.run('delivery', 'deliveries.updateDelivery', args);
  }

  async list(limit: number): Promise<readonly Delivery[]> {
    return recordsIn(await this.#redis.run('delivery', 'deliveries.listDeliveries', { limit }));
  }
}

function recordsIn({ remaining }: { readonly remaining: readonly unknown[] }): Delivery[] {
  return (remaining[0] as readonly unknown[]).map((record) => JSON.parse(String(record)) as Delivery);
}
