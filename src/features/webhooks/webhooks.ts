import { createHmac } from 'node:crypto';
import { setNewest } from '../../shared/bounded-map.js';
import { type ClientText, holderOf, noClient } from '../../shared/client.js';
import { type Clock, type StopTimer, timestamp } from '../../shared/clock.js';
import { isDefect } from '../../shared/errors.js';
import { describeError } from '../../shared/log/logger.js';
import type { TableStore } from '../stores/contract/tables.js';
import type { Delivery } from './deliveries.js';
import type { AttemptResult, PostNotice } from './post.js';
import type { WebhookLogger } from './shared.js';

/** What a receiver is told. */
export interface Notice {
  /** Id that stays the same if another host or the next service sends the same notice. */
  readonly id: string;
  /** Client that it is about; empty if it is about a group or the service. */
  readonly client: ClientText;
  readonly type: string;
  readonly data: object;
}

export interface WebhookParts {
  /** URL of the configuration; null if there are only callbacks. */
  readonly receiver: string | null;
  /** Secret of the configuration, in the form of Standard Webhooks. */
  readonly secret: string;
  readonly store: TableStore<Delivery>;
  /** Whether other hosts make attempts for the same store. */
  readonly isShared: boolean;
  /** Whether the client may still name this URL. Its key may have changed since the notice was stored. */
  readonly mayCall: (client: ClientText, url: string) => boolean;
  readonly post: PostNotice;
  readonly clock: Clock;
  readonly log: WebhookLogger;
  /** Returns a number from 0 to 1, so that several hosts do not retry at the same time. */
  readonly random: () => number;
}

/** Attempts to one receiver. `holder`: null for the receiver of the operator. */
interface Lane {
  readonly delivering: Promise<void>;
  readonly holder: ClientText | null;
}

/** Interval at which due deliveries are looked for. A new notice is sent at once. */
const checkMs = 5000;
/** Time after which another attempt may be made for a delivery whose host has not reported one. */
const leaseMs = 20_000;
/** Longest attempt. */
const attemptMs = 10_000;
/** Time for which a receiver gets nothing of a client after a failed attempt. */
const restMs = 5000;
/** Time for open attempts at the end of the service. */
const lastMs = 2000;
const firstPauseMs = 5000;
const maxPauseMs = 4 * 3_600_000;
/** Time from a notice to the last attempt. */
const giveUpMs = 24 * 3_600_000;
/** Deliveries in one round, and notices in memory while the store is unavailable. */
const maxTaken = 16;
const maxUnsaved = 100;
const maxReceivers = 1000;
/** Receivers of clients to which attempts are made at once. */
const maxLanes = 64;
/** Receivers of the clients of one holder among these, so that its slow receivers leave room for those of others. */
const maxLanesOfHolder = 16;

/**
 * Sends notices to their receivers, and tries again for a day. Each notice is stored first, and is delivered at least
 * once: an attempt with an unknown result is repeated with the same id. No caller waits for a receiver or the store.
 */
export class Webhooks {
  readonly counts = { delivered: 0, retried: 0, failed: 0, dropped: 0 };
  readonly #key: Buffer;
  readonly #parts: WebhookParts;
  /** Notices that are being stored. */
  readonly #saves = new Set<Promise<void>>();
  /** Notices that the store did not accept yet. */
  #unsaved: Delivery[] = [];
  #round: Promise<void> | null = null;
  #hasNew = false;
  /** Whether an earlier service may have left attempts open, which nobody makes any more. */
  #mayTakeOver: boolean;
  #closed: Error | null = null;
  #stopTimer: StopTimer = () => {};
  readonly #requests = new Set<AbortController>();
  /** Receivers whose last attempt has failed, with the end of their rest (monotonic). */
  readonly #resting = new Map<string, number>();
  /** Receivers to which attempts are made. No receiver waits for another one. */
  readonly #lanes = new Map<string, Lane>();

  constructor(parts: WebhookParts) {
    this.#key = Buffer.from(parts.secret.slice('whsec_'.length), 'base64');
    this.#parts = parts;
    this.#mayTakeOver = !parts.isShared;
  }

  startDeliveries(): void {
    this.#stopTimer = this.#parts.clock.every(checkMs, () => this.#begin());
    this.#begin();
  }

  /** Stores a notice and sends it. `url`: null for the receiver of the configuration. Never throws. */
  send({ id, client, type, data }: Notice, url: string | null = null): void {
    const now = this.#parts.clock.now();
    const body = JSON.stringify({ type, timestamp: timestamp(now), data });
    const begun = { status: 'pending', createdAt: now, attempts: 0, attemptedAt: null, nextAt: now } as const;
    this.#beginSave({ id, client, url, type, body, ...begun, error: null });
  }

  /**
   * Waits a short time for open attempts, then cuts them; the next service repeats them. Resolves when nothing uses the
   * store any more.
   */
  async closeWebhooks(): Promise<void> {
    this.#stopTimer();
    const closed = new Error('the service has ended');
    this.#closed = closed;
    const stop = this.#parts.clock.after(lastMs, () => {
      for (const request of this.#requests) request.abort(closed);
    });
    await this.#round;
    await Promise.all([...this.#lanes.values()].map(({ delivering }) => delivering));
    stop();
    for (const delivery of this.#unsaved.splice(0)) this.#beginSave(delivery);
    await Promise.all(this.#saves);
  }

  #beginSave(delivery: Delivery): void {
    const saving = this.#save(delivery).finally(() => this.#saves.delete(saving));
    this.#saves.add(saving);
  }

  async #save(delivery: Delivery): Promise<void> {
    try {
      const { isNew, dropped } = await this.#parts.store.addRow(delivery);
      this.#drop(dropped);
      this.#hasNew ||= isNew;
      if (isNew) this.#begin();
    } catch (error) {
      this.#report(error);
      if (this.#unsaved.length < maxUnsaved) this.#unsaved.push(delivery);
      else this.#drop(1);
    }
  }

  #drop(count: number): void {
    if (count === 0) return;
    this.counts.dropped += count;
    this.#parts.log.warn('webhook_given_up', { error: 'too many notices are pending', count });
  }

  #begin(): void {
    if (this.#closed !== null) return;
    this.#round ??= this.#deliverAll()
      .catch((error: unknown) => this.#report(error)) // the next round tries again
      .finally(() => {
        this.#round = null;
        if (this.#hasNew) this.#begin();
      });
  }

  async #deliverAll(): Promise<void> {
    const { store, clock } = this.#parts;
    for (const delivery of this.#unsaved.splice(0)) await this.#save(delivery);
    let hasMore = true;
    while (hasMore && this.#closed === null) {
      this.#hasNew = false;
      const due = clock.now() + (this.#mayTakeOver ? leaseMs : 0);
      const leaseEnd = due + leaseMs;
      const taken = await store.take(due, leaseEnd, maxTaken);
      for (const [lane, deliveries] of this.#byReceiver(taken)) this.#deliverLater(lane, deliveries, leaseEnd);
      hasMore = taken.length === maxTaken;
    }
    this.#mayTakeOver = false;
  }

  /** Begins the attempts of one receiver when the earlier ones have ended. If there are too many receivers, the lease ends. */
  #deliverLater(lane: string, deliveries: readonly Delivery[], leaseEnd: number): void {
    const earlier = this.#lanes.get(lane)?.delivering;
    const isOperators = deliveries.some(({ url }) => url === null);
    if (earlier === undefined && !isOperators && !this.#hasLaneFor(deliveries[0]?.client ?? noClient)) return;
    const delivering = (earlier ?? Promise.resolve())
      .then(() => this.#deliverInOrder(deliveries, leaseEnd))
      .finally(() => {
        if (this.#lanes.get(lane)?.delivering === delivering) this.#lanes.delete(lane);
      });
    const holder = isOperators ? null : holderOf(deliveries[0]?.client ?? noClient);
    this.#lanes.set(lane, { delivering, holder });
  }

  /** Whether attempts to one more receiver of a client may begin. */
  #hasLaneFor(client: ClientText): boolean {
    const holder = holderOf(client);
    const isOfHolder = (lane: Lane) => lane.holder === holder;
    return this.#lanes.size < maxLanes && [...this.#lanes.values()].filter(isOfHolder).length < maxLanesOfHolder;
  }

  /** Makes the attempts of one receiver. Those that would last beyond the lease are left for a later round. */
  async #deliverInOrder(deliveries: readonly Delivery[], leaseEnd: number): Promise<void> {
    const { clock } = this.#parts;
    for (const delivery of deliveries) {
      const restEndMs = this.#resting.get(this.#laneOf(delivery)) ?? Number.NEGATIVE_INFINITY;
      const isResting = clock.monotonicMs() < restEndMs;
      if (isResting || this.#closed !== null || clock.now() > leaseEnd - attemptMs) continue;
      await this.#deliver(delivery);
    }
  }

  async #deliver(delivery: Delivery): Promise<void> {
    const { clock, store } = this.#parts;
    const attemptedAt = clock.now();
    const result = await this.#post(delivery, attemptedAt);
    if (this.#closed !== null && result.kind === 'failed') return;
    const attempts = delivery.attempts + 1;
    const attempted = { ...delivery, attempts, attemptedAt };
    // if the store fails, the attempt is repeated after the lease
    const updated = { ...attempted, ...this.#conclude(attempted, result) };
    await store.updateRow(updated).catch((error: unknown) => this.#report(error));
  }

  /** Logs a defect. The store logs its own failures. */
  #report(error: unknown): void {
    if (isDefect(error)) this.#parts.log.error('internal_error', { error: describeError(error) });
  }

  /** Makes one attempt. A client gets a secret of its own, so that it cannot sign notices to others. */
  async #post({ id, client, url, body }: Delivery, now: number): Promise<AttemptResult> {
    const { clock, post } = this.#parts;
    const target = url ?? this.#parts.receiver;
    if (target === null) return { kind: 'failed', reason: 'no receiver is configured any more', isFinal: true };
    // On a host that has just started, the keys made over HTTP may not be known yet, so the attempt is repeated.
    if (url !== null && !this.#parts.mayCall(client, url))
      return { kind: 'failed', reason: 'the key of this client no longer allows this URL', isFinal: false };
    const key = url === null ? this.#key : createHmac('sha256', this.#key).update(client).digest();
    const seconds = String(Math.floor(now / 1000));
    const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
    const headers = { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
    const request = new AbortController();
    this.#requests.add(request);
    const stop = clock.after(attemptMs, () => request.abort(new Error(`no answer in ${attemptMs / 1000} s`)));
    try {
      return await post(target, headers, body, request.signal, url !== null);
    } finally {
      stop();
      this.#requests.delete(request);
    }
  }

  /** Decides whether a delivery has ended with this attempt, counts it, and logs a change of its receiver. */
  #conclude(delivery: Delivery, result: AttemptResult): Partial<Delivery> {
    const [lane, receiver] = [this.#laneOf(delivery), this.#receiverOf(delivery)];
    if (result.kind === 'accepted') {
      this.counts.delivered++;
      if (this.#resting.delete(lane)) this.#parts.log.info('webhook_back', { receiver });
      return { status: 'delivered', body: '', nextAt: null, error: null };
    }
    const { clock, log, random } = this.#parts;
    const { reason: error } = result;
    if (!this.#resting.has(lane)) log.warn('webhook_failed', { receiver, error });
    setNewest(this.#resting, lane, clock.monotonicMs() + restMs, maxReceivers);
    const pauseMs = Math.min(firstPauseMs * 5 ** (delivery.attempts - 1), maxPauseMs) * (1 + random() / 5);
    const lastAt = delivery.createdAt + giveUpMs;
    if (!result.isFinal && clock.now() < lastAt) {
      const nextAt = Math.min(Math.round(clock.now() + pauseMs), lastAt);
      this.counts.retried++;
      return { status: 'pending', nextAt, error };
    }
    this.counts.failed++;
    log.error('webhook_given_up', { webhook: delivery.id, type: delivery.type, receiver, error, count: 1 });
    return { status: 'failed', body: '', nextAt: null, error };
  }

  #receiverOf({ url }: Delivery): string {
    const target = url ?? this.#parts.receiver;
    return target === null ? '' : originOf(target);
  }

  /**
   * Returns the name of a receiver for one client: what fails for a client must not delay the notices of others to the
   * same host. The receiver of the configuration is one, whichever client a notice is about.
   */
  #laneOf(delivery: Delivery): string {
    return delivery.url === null ? '' : `${delivery.client} ${this.#receiverOf(delivery)}`;
  }

  #byReceiver(deliveries: readonly Delivery[]): ReadonlyMap<string, readonly Delivery[]> {
    const lanes = new Map<string, Delivery[]>();
    for (const delivery of deliveries) {
      const lane = this.#laneOf(delivery);
      lanes.set(lane, [...(lanes.get(lane) ?? []), delivery]);
    }
    return lanes;
  }
}

/** Returns scheme, host and port: the path of a URL may be a secret. */
export function originOf(url: string): string {
  return new URL(url).origin;
}
