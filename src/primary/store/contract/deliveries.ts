/** Most notices about jobs that a store has, of all clients and of the clients of one holder. */
export const maxJobNotices = 800;
export const maxOfClient = 100;
/** Most other notices: budgets, quotas and logins. No notice about a job takes their places. */
export const maxOperatorNotices = 200;
/** Type of the notices that clients cause with each background job. */
export const jobNoticeType = 'job.ended';
/** Time after which an ended delivery is removed: longer than a month, so that no budget is reported twice in one. */
export const deliveryTtlMs = 40 * 86_400_000;

/** A notice to a receiver, and the attempts to deliver it. Times are in milliseconds since the epoch. */
export interface Delivery {
  /** Id of the notice. A notice with the same id is stored once, whichever host sends it. */
  readonly id: string;
  /** Client that the notice is about; empty if it is about a group or the service. */
  readonly client: string;
  /** URL of the receiver; null for the receiver in the configuration, whose URL may be a secret. */
  readonly url: string | null;
  readonly type: string;
  /** The notice as JSON, the same for each attempt; empty when the delivery has ended. */
  readonly body: string;
  readonly status: 'pending' | 'delivered' | 'failed';
  readonly createdAt: number;
  readonly attempts: number;
  /** Time of the last attempt; null before the first one. */
  readonly attemptedAt: number | null;
  /** Time of the next attempt; null when the delivery has ended. */
  readonly nextAt: number | null;
  /** Why the last attempt has failed; null if it has not. */
  readonly error: string | null;
}

/** Whether an added delivery was new, and the number of pending ones that were removed for it. */
export interface AddedDelivery {
  readonly isNew: boolean;
  readonly dropped: number;
}

/** Stores deliveries until they have ended, and a while longer. All methods reject with `store_unavailable`. */
export interface DeliveryStore {
  /**
   * Adds a pending delivery, unless one with its id is known. Beyond the limits, the oldest one with the same limit is
   * removed: first one that has ended, then one about a client.
   */
  add(delivery: Delivery): Promise<AddedDelivery>;
  /**
   * Returns pending deliveries that are due, the longest due first. No host gets them again until the time `until`, so
   * that an attempt whose host dies is made again.
   */
  take(now: number, until: number, limit: number): Promise<readonly Delivery[]>;
  /** Replaces a delivery after an attempt. Has no effect if it was removed. */
  update(delivery: Delivery): Promise<void>;
  /** Returns the newest deliveries, the newest first. */
  list(limit: number): Promise<readonly Delivery[]>;
}
