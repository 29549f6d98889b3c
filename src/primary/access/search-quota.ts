import { setNewest } from '../../shared/bounded-map.js';
import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { SearchPosition } from '../../shared/config/variables.js';
import { invalid, RelayError, retryAfter } from '../../shared/errors.js';
import type { WebSearch } from '../../shared/job.js';
import { dayOf } from '../store/contract/usage.js';

/** Maximum number of searches for one answer. */
const maxPerAnswer = 8;
/** Maximum number of clients whose searches of a day are counted. */
const maxClients = 10_000;
const dayMs = 86_400_000;

/**
 * Counts the web searches of each client in this day (UTC) of this host. A key is counted with its sub-clients. A restart
 * begins at 0.
 */
export class SearchQuota {
  readonly #position: SearchPosition;
  readonly #perDayOf: (client: string) => number | null;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #used = new Map<string, number>();
  #day = '';

  /** `perDayOf`: returns the limit of a client; null if the client may not search. */
  constructor(position: SearchPosition, perDayOf: (client: string) => number | null, clock: Pick<Clock, 'now'>) {
    this.#position = position;
    this.#perDayOf = perDayOf;
    this.#clock = clock;
  }

  /** Throws `validation_error` if the client may not search, and `rate_limited` if it has used its searches of the day. */
  check({ path }: WebSearch, client: string): void {
    const perDay = this.#perDayOf(client);
    if (this.#position === 'off') throw invalid(path, 'the web search is off here (MODEL_API_SEARCH=off)');
    if (perDay === null) throw invalid(path, 'the web search needs an API key with the option search=on');
    if (this.#usedBy(client) < perDay) return;
    const retryAfterSeconds = retryAfter('budget', dayMs - (this.#clock.now() % dayMs));
    const message = `the client has used its ${perDay} web searches of this day (UTC)`;
    throw new RelayError('rate_limited', message, { reason: 'budget', retryAfterSeconds });
  }

  /** Returns the number of searches that a job may make, which counts until `settle`. Throws like `check`. */
  reserve(search: WebSearch, client: string): number {
    this.check(search, client);
    const left = (this.#perDayOf(client) ?? 0) - this.#usedBy(client);
    const reserved = Math.min(left, maxPerAnswer, search.maxUses ?? maxPerAnswer);
    this.#add(client, reserved);
    return reserved;
  }

  /** Replaces reserved searches by those that the job has made. */
  settle(client: string, reserved: number, made: number): void {
    this.#add(client, made - reserved);
  }

  #usedBy(client: string): number {
    const day = dayOf(this.#clock.now());
    if (day !== this.#day) this.#used.clear();
    this.#day = day;
    return this.#used.get(holderOf(client)) ?? 0;
  }

  #add(client: string, count: number): void {
    setNewest(this.#used, holderOf(client), Math.max(0, this.#usedBy(client) + count), maxClients);
  }
}
