import { clientsOfHolder, holderOf } from '../../../shared/client.js';
import {
  type AddedDelivery,
  type Delivery,
  deliveryTtlMs,
  jobNoticeType,
  maxJobNotices,
  maxOfClient,
  maxOperatorNotices,
} from '../contract/deliveries.js';
import type { SqlRow, SqlValue, Statements } from './node-sqlite.js';

const typeColumn = "json_extract(record, '$.type')";

/** Owns the deliveries of notices in the file. */
export class DeliveryTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  add(delivery: Delivery): AddedDelivery {
    const { id, client, createdAt, nextAt } = delivery;
    this.#sql.run('DELETE FROM deliveries WHERE next_at IS NULL AND created_at < ?', createdAt - deliveryTtlMs);
    if (this.#sql.get('SELECT number FROM deliveries WHERE id = ?', id) !== undefined)
      return { isNew: false, dropped: 0 };
    const dropped = delivery.type === jobNoticeType ? this.#makeRoomForJob(client) : this.#makeRoomForOperator();
    this.#sql.run(
      'INSERT INTO deliveries (id, client, created_at, next_at, record) VALUES (?, ?, ?, ?, ?)',
      ...[id, client, createdAt, nextAt, JSON.stringify(delivery)],
    );
    return { isNew: true, dropped };
  }

  take(now: number, until: number, limit: number): Delivery[] {
    const due = this.#sql.all(
      'SELECT number, record FROM deliveries WHERE next_at <= ? ORDER BY next_at, number LIMIT ?',
      ...[now, limit],
    );
    for (const { number = null } of due)
      this.#sql.run('UPDATE deliveries SET next_at = ? WHERE number = ?', until, number);
    return due.map(deliveryOf);
  }

  update(delivery: Delivery): void {
    this.#sql.run(
      'UPDATE deliveries SET next_at = ?, record = ? WHERE id = ?',
      ...[delivery.nextAt, JSON.stringify(delivery), delivery.id],
    );
  }

  list(limit: number): Delivery[] {
    return this.#sql.all('SELECT record FROM deliveries ORDER BY number DESC LIMIT ?', limit).map(deliveryOf);
  }

  #makeRoomForJob(client: string): number {
    const [from, before] = clientsOfHolder(client);
    const isOfHolder = '(client = ? OR (client > ? AND client < ?))';
    const values = [holderOf(client), from, before, jobNoticeType];
    const dropped = this.#makeRoom(maxOfClient, `WHERE ${isOfHolder} AND ${typeColumn} = ?`, ...values);
    return dropped + this.#makeRoom(maxJobNotices, `WHERE ${typeColumn} = ?`, jobNoticeType);
  }

  #makeRoomForOperator(): number {
    return this.#makeRoom(maxOperatorNotices, `WHERE ${typeColumn} <> ?`, jobNoticeType);
  }

  /**
   * Removes one delivery if there are `max`: the oldest that has ended, else the oldest about a client. Returns the
   * number of pending ones that it removes.
   */
  #makeRoom(max: number, where: string, ...values: SqlValue[]): number {
    const count = Number(this.#sql.get(`SELECT count(*) AS n FROM deliveries ${where}`, ...values)?.n);
    if (count < max) return 0;
    const removed = this.#sql.get(
      `DELETE FROM deliveries WHERE number = (
         SELECT number FROM deliveries ${where} ORDER BY next_at IS NOT NULL, client = '', number LIMIT 1
       ) RETURNING next_at`,
      ...values,
    );
    return (removed?.next_at ?? null) === null ? 0 : 1;
  }
}

function deliveryOf(row: SqlRow): Delivery {
  return JSON.parse(String(row.record)) as Delivery;
}
