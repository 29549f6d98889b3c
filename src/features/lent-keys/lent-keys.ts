import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { RateLimit } from '../../primary/access/rate-limit.js';
import type { PrimaryCore } from '../../primary/features/feature.js';
import type { OperatorAct } from '../../shared/acts.js';
import { type ClientText, clientText } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import { digestOf, type LentKey } from '../../shared/config/api-keys.js';
import { ignoreFailure, invalid, RelayError } from '../../shared/errors.js';
import type { Actor, WorkerKey } from '../../shared/ipc/protocol.js';
import type { LogEvent, Logger } from '../../shared/log/logger.js';
import { formatCount } from '../../shared/text/format.js';
import type { SharedText } from '../stores/contract/shared-text.js';
import { StoredRecords } from '../stores/stored-records.js';
import { type LentKeyView, type logEvents, maxOfClient, type NewLentKey, ownId } from './shared.js';

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const lentKey = z.strictObject({
  ...{ id: z.string(), client: clientText, digest, lenderDigest: digest },
  ...{ madeAt: z.number(), expiresAt: z.number() },
}) satisfies z.ZodType<LentKey>;

/** Lent keys of all clients, above which each client may have one. */
const maxKeys = 5000;
/** Keys that a client may lend in an hour, because each writes a record. */
export const lendingRate = { maxRequests: 120, windowMs: 3_600_000 };

export interface LentKeysParts {
  readonly clients: Pick<PrimaryCore['clients'], 'keyWithDigest' | 'replaceLentKeys'>;
  /** Sends the keys to the workers. Resolves when they use them. */
  readonly sendKeys: () => Promise<void>;
  /** Rejects if an act must be refused. */
  readonly beforeAct: (act: OperatorAct) => Promise<void>;
  readonly shared: SharedText | null;
  readonly path: string | null;
  /** Longest time of a lent key; 0 if nobody may lend one. */
  readonly maxMs: number;
  readonly limit: Pick<RateLimit, 'takeRequest'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Pick<Logger<LogEvent | keyof typeof logEvents>, 'info' | 'error'>;
}

/** Client of a request, and the id of its lent key; null for other keys. */
interface Borrower {
  readonly by: Actor;
  readonly lentId: string | null;
}

/**
 * Owns the lent keys. A lent key belongs to the client of the key that has lent it, and ends with that key; the core
 * limits its rights to those of that key.
 */
export class LentKeys {
  readonly #parts: LentKeysParts;
  readonly #records: StoredRecords<LentKey>;
  /** Lent keys whose lender this host has known: only these end when it no longer knows the lender. */
  #withLender = new Set<string>();

  constructor(parts: LentKeysParts) {
    this.#parts = parts;
    const { clients, shared, path, sendKeys, log } = parts;
    this.#records = new StoredRecords({
      ...{ readRecord: (stored) => lentKey.safeParse(stored).data ?? null, shared, path },
      clientOf: ({ client }) => client,
      activate: (keys) => {
        clients.replaceLentKeys(keys);
        return sendKeys();
      },
      onDamaged: () => log.error('lent_keys_rejected', {}),
    });
  }

  /** Lists all lent keys for an administrator, else those of the client. */
  list({ by, lentId }: Borrower): LentKeyView[] {
    if (lentId !== null) throw new RelayError('forbidden', 'a lent key cannot list keys');
    const now = this.#parts.clock.now();
    return this.#records.all.flatMap((key) =>
      key.expiresAt > now && (by.isAdmin || key.client === by.client) ? [viewOf(key)] : [],
    );
  }

  /** Makes a lent key. Only its digest is stored. `digest`: that of the key that lends it; null for a person without a key. */
  async lend(order: Borrower & { readonly digest: string | null; readonly seconds: number }): Promise<NewLentKey> {
    const { by, seconds } = order;
    const lender = this.#lenderOf(order);
    const { maxMs, clock, limit, beforeAct, log } = this.#parts;
    if (seconds * 1000 > maxMs) throw invalid('seconds', `must be at most ${maxMs / 1000} (MODEL_API_MAX_LENT_HOURS)`);
    this.#checkCount(by.client, this.#records.all);
    const { isAllowed, resetSeconds } = await limit.takeRequest(by.client);
    if (!isAllowed)
      throw new RelayError('rate_limited', `you may lend ${lendingRate.maxRequests} keys an hour`, {
        retryAfterSeconds: resetSeconds,
      });
    const key = `pr_${randomBytes(24).toString('base64url')}`;
    const id = randomBytes(6).toString('hex');
    const made = await this.#records.update((records) => {
      const now = clock.now();
      this.#checkCount(by.client, records);
      const expiresAt = Math.min(now + seconds * 1000, lender.expiresAt ?? Number.POSITIVE_INFINITY);
      const lent = {
        ...{ id, client: by.client, digest: digestOf(key), lenderDigest: lender.digest, madeAt: now, expiresAt },
      };
      const target = `${id} until ${timestamp(expiresAt)}`;
      const before = () => beforeAct({ act: 'key_lent', by: by.client, target, request_id: by.requestId });
      return { records: [...records, lent], answer: lent, before };
    });
    log.info('key_lent', { id, by: by.client, until: timestamp(made.expiresAt) });
    return { key, ...viewOf(made) };
  }

  /** Ends a lent key. A lent key can end only itself. */
  async endKey({ by, lentId, id }: Borrower & { readonly id: string }): Promise<{ readonly id: string }> {
    const wanted = id === ownId ? lentId : id;
    const isMine = (key: LentKey) =>
      lentId === null ? by.isAdmin || key.client === by.client : key.id === lentId && key.client === by.client;
    const { beforeAct, log } = this.#parts;
    await this.#records.update((records) => {
      const key = records.find((each) => each.id === wanted && isMine(each));
      if (key === undefined) throw new RelayError('not_found', 'no such lent key');
      const target = `${key.id} of ${key.client}`;
      const before = () => beforeAct({ act: 'lent_key_ended', by: by.client, target, request_id: by.requestId });
      return { records: records.filter((each) => each !== key), answer: null, before };
    });
    log.info('lent_key_ended', { id: String(wanted), by: by.client });
    return { id: String(wanted) };
  }

  /** Ends the lent keys of these clients. Resolves with their number. */
  removeOf(isAmong: (client: ClientText) => boolean): Promise<number> {
    return this.#records.removeOf(isAmong);
  }

  /** Returns the lent keys of a client, for its export. */
  findRecords(client: ClientText): LentKeyView[] {
    return this.#records.findRecords(client).map(viewOf);
  }

  /** Reads the keys of other hosts, and removes those that have ended. Rejects only with a defect. */
  async refresh(): Promise<void> {
    await this.#records.readRecords();
    const { all } = this.#records;
    const wereKnown = this.#withLender;
    const lenderOf = this.#lenders(all);
    this.#withLender = new Set(all.flatMap((key) => (wereKnown.has(key.id) || lenderOf(key) ? [key.id] : [])));
    const ended = new Set(all.flatMap((key) => (this.#hasEnded(key, lenderOf(key)) ? [key.id] : [])));
    if (ended.size === 0) return;
    const change = (records: readonly LentKey[]) => ({
      records: records.filter(({ id }) => !ended.has(id)),
      answer: null,
    });
    await this.#records.update(change).catch(ignoreFailure);
  }

  /**
   * Whether a lent key can never be used again. Hosts read their files of keys at different times: a host removes only
   * keys whose lender it has known.
   */
  #hasEnded(key: LentKey, lender: WorkerKey | null | undefined): boolean {
    const now = this.#parts.clock.now();
    if (key.expiresAt <= now) return true;
    if (lender === undefined) return false;
    const isOver = lender === null || (lender.expiresAt !== null && lender.expiresAt <= now);
    return isOver && (this.#parts.shared === null || this.#withLender.has(key.id));
  }

  /** Returns a function that returns the lender of each of these keys. A lender is sought once, because it may have many. */
  #lenders(keys: readonly LentKey[]): (key: LentKey) => WorkerKey | null | undefined {
    const nameOf = ({ client, lenderDigest }: LentKey) => `${lenderDigest} ${client}`;
    const one = new Map(keys.map((key) => [nameOf(key), key]));
    const { clients } = this.#parts;
    const found = new Map([...one].map(([name, key]) => [name, clients.keyWithDigest(key.client, key.lenderDigest)]));
    return (key) => found.get(nameOf(key));
  }

  /** Returns the key that lends. Throws `forbidden` if it may not. */
  #lenderOf({ by, lentId, digest }: Borrower & { readonly digest: string | null }): WorkerKey {
    const refusal = (reason: string) => new RelayError('forbidden', reason);
    if (this.#parts.maxMs === 0) throw refusal('keys cannot be lent here (MODEL_API_MAX_LENT_HOURS)');
    if (lentId !== null) throw refusal('a lent key cannot be lent');
    const lender = digest === null ? null : this.#parts.clients.keyWithDigest(by.client, digest);
    if (!lender) throw refusal('only an API key can be lent: make one first (own_keys)');
    if (!lender.scopes.some((scope) => scope === 'ask' || scope === 'chat'))
      throw refusal('a lent key could do nothing: this key has neither the scope ask nor chat');
    return lender;
  }

  #checkCount(client: ClientText, records: readonly LentKey[]): void {
    const now = this.#parts.clock.now();
    const open = records.filter(({ expiresAt }) => expiresAt > now);
    const own = open.filter((key) => key.client === client).length;
    if (own >= maxOfClient)
      throw new RelayError('forbidden', `you may have ${formatCount(maxOfClient, 'lent key')}: end one first`);
    if (own > 0 && open.length >= maxKeys) throw new RelayError('forbidden', `the service has ${maxKeys} lent keys`);
  }
}

function viewOf({ id, client, madeAt, expiresAt }: LentKey): LentKeyView {
  return { id, client, made_at: timestamp(madeAt), expires_at: timestamp(expiresAt) };
}
