import { holderOf } from '../../../shared/client.js';
import {
  type AddedDelivery,
  type Delivery,
  type DeliveryStore,
  deliveryTtlMs,
  jobNoticeType,
  maxJobNotices,
  maxOfClient,
  maxOperatorNotices,
} from '../contract/deliveries.js';

/** Owns the deliveries of a service without a durable store. */
export class MemoryDeliveries implements DeliveryStore {
  /** Oldest first. */
  readonly #byId = new Map<string, Delivery>();

  async add(delivery: Delivery): Promise<AddedDelivery> {
    const { id, client, createdAt } = delivery;
    for (const old of this.#byId.values()) {
      if (old.createdAt >= createdAt - deliveryTtlMs) break;
      this.#byId.delete(old.id);
    }
    if (this.#byId.has(id)) return { isNew: false, dropped: 0 };
    const dropped = delivery.type === jobNoticeType ? this.#makeRoomForJob(client) : this.#makeRoomForOperator();
    this.#byId.set(id, delivery);
    return { isNew: true, dropped };
  }

  #makeRoomForJob(client: string): number {
    const holder = holderOf(client);
    const listJobNotices = () => [...this.#byId.values()].filter(({ type }) => type === jobNoticeType);
    const clientDeliveries = listJobNotices().filter((other) => holderOf(other.client) === holder);
    const dropped = clientDeliveries.length >= maxOfClient ? this.#dropOne(clientDeliveries) : 0;
    const jobDeliveries = listJobNotices();
    return jobDeliveries.length >= maxJobNotices ? dropped + this.#dropOne(jobDeliveries) : dropped;
  }

  #makeRoomForOperator(): number {
    const others = [...this.#byId.values()].filter(({ type }) => type !== jobNoticeType);
    return others.length >= maxOperatorNotices ? this.#dropOne(others) : 0;
  }

  async take(now: number, until: number, limit: number): Promise<readonly Delivery[]> {
    const due = [...this.#byId.values()].filter(({ nextAt }) => nextAt !== null && nextAt <= now);
    const taken = due.sort((a, b) => (a.nextAt ?? 0) - (b.nextAt ?? 0)).slice(0, limit);
    for (const delivery of taken) this.#byId.set(delivery.id, { ...delivery, nextAt: until });
    return taken;
  }

  async update(delivery: Delivery): Promise<void> {
    if (this.#byId.has(delivery.id)) this.#byId.set(delivery.id, delivery);
  }

  async list(limit: number): Promise<readonly Delivery[]> {
    return [...this.#byId.values()].slice(-limit).toReversed();
  }

  /** Removes the deliveries of a client. Returns their number. */
  removeOf(client: string): number {
    const found = [...this.#byId.values()].filter((delivery) => delivery.client === client);
    for (const { id } of found) this.#byId.delete(id);
    return found.length;
  }

  /** Removes the first one that has ended, else the first one about a client. Returns the number of pending ones. */
  #dropOne(oldestFirst: readonly Delivery[]): number {
    const victim =
      oldestFirst.find(({ nextAt }) => nextAt === null) ??
      oldestFirst.find(({ client }) => client !== '') ??
      oldestFirst[0];
    if (victim === undefined) return 0;
    this.#byId.delete(victim.id);
    return victim.nextAt === null ? 0 : 1;
  }
}
