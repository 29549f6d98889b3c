import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { ClientText } from '../../shared/client.js';
import { type Clock, delay } from '../../shared/clock.js';
import { plainOptions } from '../../shared/config/api-keys.js';
import { GroupLines } from '../../shared/config/group-lines.js';
import { PersonLines } from '../../shared/config/people.js';
import { RelayError, retryAfter } from '../../shared/errors.js';
import type { ClientRights, WorkerGroup, WorkerKey, WorkerKeys, WorkerPersonLine } from '../../shared/ipc/protocol.js';
import type { Primary } from '../http/exchange.js';
import type { Person } from './people.js';

/** Owns the API keys that this worker accepts, and the lines for people. */
export class KeyRing {
  /** Keys by the HMAC of their digest; null if requests need no key. */
  #accepted: ReadonlyMap<string, WorkerKey> | null = null;
  #lines = new PersonLines<WorkerPersonLine>([]);
  #groups = new GroupLines<WorkerGroup>([]);
  readonly #secret = randomBytes(32);
  #version = 0;

  /** Number of times that the keys and the lines were set. */
  get version(): number {
    return this.#version;
  }

  /** Sets the keys of the worker's start, unless newer ones have already arrived. */
  setFirstKeys(keys: WorkerKeys): void {
    if (this.#version === 0) this.replace(keys);
  }

  replace({ keys, personLines, groups = [] }: WorkerKeys): void {
    this.#version++;
    this.#groups = new GroupLines(groups);
    this.#lines = new PersonLines(personLines);
    this.#accepted =
      keys && new Map(keys.toReversed().map((key) => [this.#markOf(Buffer.from(key.digest, 'hex')), key]));
  }

  /** Whether requests need a key. */
  get isNeeded(): boolean {
    return this.#accepted !== null;
  }

  find(presented: string): WorkerKey | null {
    const digest = createHash('sha256').update(presented).digest();
    return this.#accepted?.get(this.#markOf(digest)) ?? null;
  }

  /** Returns the rights of a person whom a trusted proxy has signed on. */
  rightsOf({ name, groups }: Person): ClientRights {
    const line = this.#lines.find(name, groups);
    const { group = '', ...rights }: WorkerPersonLine = line ?? {
      ...everybody,
      name,
      scopes: [...plainOptions.scopes],
    };
    const end = line?.name === name && group === '' ? null : this.#groups.endOf([...groups, group]);
    const isCapped = rights.isCapped || this.#groups.linesOf([...groups, group]).some((each) => each.isCapped);
    const isOfGroup = end !== null && end.expiresAt < (rights.expiresAt ?? Number.POSITIVE_INFINITY);
    const ending = isOfGroup ? { expiresAt: end.expiresAt, endsWith: end.group } : {};
    return { ...rights, isCapped, ...ending, name, hasSubclients: false };
  }

  /** Returns a digest's HMAC with a random secret, so that the time of a map lookup reveals nothing about the keys. */
  #markOf(digest: Buffer): string {
    return createHmac('sha256', this.#secret).update(digest).digest('base64');
  }
}

/** Rights of a person without a line. */
const everybody = { isCapped: false, expiresAt: null } as const;

/** Delay of the answer to a blocked caller, milliseconds: slows down clients that try one key after another. */
const delayMs = 250;
/** Maximum of delayed answers at once, to bound their cost; further ones are sent without delay. */
const maxDelayed = 256;
/** Maximum of cached blocks. When a further one arrives, the cache is cleared; the primary still knows all. */
const maxBlocks = 1000;

/** Owns a cache of callers that are blocked for too many wrong keys. The primary counts wrong keys. */
export class WrongKeys {
  readonly #primary: Pick<Primary, 'call'>;
  readonly #clock: Clock;
  readonly #blockedUntilMs = new Map<string, number>();

  #delayed = 0;

  constructor(primary: Pick<Primary, 'call'>, clock: Clock) {
    this.#primary = primary;
    this.#clock = clock;
  }

  /**
   * Counts a wrong key of this caller at the primary, unless a cached block exists. Throws `rate_limited` after too
   * many.
   */
  async count(caller: ClientText): Promise<void> {
    const known = this.#secondsLeft(caller);
    if (known > 0) return this.#refuse(known);
    const { blockedSeconds } = await this.#primary.call('wrongKey', { caller });
    if (blockedSeconds === 0) return;
    this.#remember(caller, blockedSeconds);
    await this.#refuse(blockedSeconds);
  }

  async #refuse(seconds: number): Promise<never> {
    if (this.#delayed < maxDelayed) {
      this.#delayed++;
      await delay(this.#clock, delayMs);
      this.#delayed--;
    }
    throw blocked(seconds);
  }

  #secondsLeft(caller: string): number {
    const until = this.#blockedUntilMs.get(caller) ?? 0;
    return Math.ceil((until - this.#clock.monotonicMs()) / 1000);
  }

  #remember(caller: string, seconds: number): void {
    if (this.#blockedUntilMs.size >= maxBlocks) this.#blockedUntilMs.clear();
    this.#blockedUntilMs.set(caller, this.#clock.monotonicMs() + seconds * 1000);
  }
}

function blocked(seconds: number): RelayError {
  const message = 'too many wrong API keys came from this address: a valid key is still accepted';
  return new RelayError('rate_limited', message, { retryAfterSeconds: retryAfter('wrong_keys', seconds * 1000) });
}
