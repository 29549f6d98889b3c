import { type ClientText, spendersOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { invalid, RelayError, retryAfter } from '../../shared/errors.js';
import type { WebSearch } from '../../shared/job.js';
import type { RecentUsage } from '../usage/recent-usage.js';
import type { SearchPosition } from './search-position.js';
import { searchesPerDay } from './shared.js';

/** Limit of web searches in a day. */
export interface SearchLimit {
  readonly client: ClientText;
  readonly perDay: number;
}

/**
 * Returns the limits of web searches in a day for which the searches of a client count; empty if it may not search.
 * `optionsOf`: returns the texts of options of a client.
 */
export function searchLimitsOf(
  client: ClientText,
  optionsOf: (client: ClientText) => Readonly<Record<string, string>>,
): SearchLimit[] {
  if (searchesPerDay(optionsOf(client)) === null) return [];
  const limits = spendersOf(client).map((each) => ({ client: each, perDay: searchesPerDay(optionsOf(each)) }));
  return limits.flatMap(({ perDay, ...limit }) => (perDay === null ? [] : { ...limit, perDay }));
}

/** Maximum number of searches for one answer. */
const maxPerAnswer = 8;
const dayMs = 86_400_000;

/**
 * Limits the web searches of each client in a day (UTC). A person is counted with the own keys, and a key with its
 * sub-clients. The usage has the searches of ended jobs, on all hosts. This class counts only the searches that running
 * jobs of this host may make.
 */
export class SearchQuota {
  readonly #position: SearchPosition;
  readonly #limitsOf: (client: ClientText) => readonly SearchLimit[];
  readonly #usage: Pick<RecentUsage, 'searchesOf'>;
  readonly #clock: Pick<Clock, 'now'>;
  /** Searches that running jobs may make, by the clients for which they count. */
  readonly #reserved = new Map<string, number>();

  /** `limitsOf`: returns the limits of a client; empty if the client may not search. `usage` has the searches of ended jobs. */
  constructor(
    position: SearchPosition,
    limitsOf: (client: ClientText) => readonly SearchLimit[],
    usage: Pick<RecentUsage, 'searchesOf'>,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#position = position;
    this.#limitsOf = limitsOf;
    this.#usage = usage;
    this.#clock = clock;
  }

  /** Throws `validation_error` if the client may not search, and `rate_limited` if it has used its searches of the day. */
  check(search: WebSearch, client: ClientText): void {
    this.#leftFor(search, client);
  }

  /** Returns the number of searches that a job may make, which count until `settle`. Throws like `check`. */
  reserve(search: WebSearch, client: ClientText): number {
    const reserved = Math.min(this.#leftFor(search, client), maxPerAnswer, search.maxUses ?? maxPerAnswer);
    this.#add(client, reserved);
    return reserved;
  }

  /** Releases reserved searches. The searches that the job has made must already be in the usage, or nothing would count them. */
  settle(client: ClientText, reserved: number): void {
    this.#add(client, -reserved);
  }

  /** Returns the searches that the client may still make in this day, at least 1. Throws like `check`. */
  #leftFor({ path }: WebSearch, client: ClientText): number {
    if (this.#position === 'off') throw invalid(path, 'the web search is off here (MODEL_API_SEARCH=off)');
    const lefts = this.#limitsOf(client).map((limit) => ({ perDay: limit.perDay, left: this.#leftOf(limit) }));
    const [least] = lefts.toSorted((a, b) => a.left - b.left);
    if (least === undefined) throw invalid(path, 'the web search needs an API key with the option search=on');
    if (least.left > 0) return least.left;
    const retryAfterSeconds = retryAfter('budget', dayMs - (this.#clock.now() % dayMs));
    const message = `the client has used its ${least.perDay} web searches of this day (UTC)`;
    throw new RelayError('rate_limited', message, { reason: 'budget', retryAfterSeconds });
  }

  #leftOf({ client, perDay }: SearchLimit): number {
    return perDay - this.#usage.searchesOf(client) - (this.#reserved.get(client) ?? 0);
  }

  #add(client: ClientText, count: number): void {
    for (const spender of spendersOf(client)) {
      const reserved = (this.#reserved.get(spender) ?? 0) + count;
      if (reserved > 0) this.#reserved.set(spender, reserved);
      else this.#reserved.delete(spender);
    }
  }
}
