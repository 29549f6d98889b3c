import type { Clock } from '../../shared/clock.js';

/** A request of a caller that keeps its conversation itself, until it is answered. */
export interface Arrival {
  readonly client: string;
  readonly atMs: number;
  /** Whether it came at once after an answer to its client. */
  readonly isAfterAnswer: boolean;
}

/** How long after an answer side requests come: those of qwen 0.04 s. */
const afterMs = 1000;
/** How long before the request for an answer: opencode asks for a title 0.5 to 1.7 s before. */
const beforeMs = 2500;
/** The oldest beyond these are forgotten. */
const maxPlaces = 4096;
const maxClients = 1024;

/** Owns what is known of the conversations that callers keep themselves: hashes and times, no text. */
export class RecentChains {
  readonly #clock: Clock;
  readonly #open = new Set<Arrival>();
  /** Where answered conversations stood. */
  readonly #places = new Map<string, true>();
  /** When each client got its last answer, monotonic. */
  readonly #answeredMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A request arrives. It must leave. */
  arrive(client: string): Arrival {
    const atMs = this.#clock.monotonicMs();
    const answeredMs = this.#answeredMs.get(client) ?? Number.NEGATIVE_INFINITY;
    const arrival = { client, atMs, isAfterAnswer: atMs - answeredMs <= afterMs };
    this.#open.add(arrival);
    return arrival;
  }

  leave(arrival: Arrival): void {
    this.#open.delete(arrival);
  }

  /** The request is answered, and its conversation stands at this place. */
  answered({ client }: Arrival, place: string): void {
    remember(this.#places, place, true, maxPlaces);
    remember(this.#answeredMs, client, this.#clock.monotonicMs(), maxClients);
  }

  /** Whether the service has answered a conversation that stood there. */
  knows(place: string): boolean {
    return this.#places.has(place);
  }

  /** Whether it came at once after an answer, or together with another request that takes longer. */
  isBeside(arrival: Arrival): boolean {
    const { client, atMs, isAfterAnswer } = arrival;
    const isOther = (open: Arrival) => open !== arrival && open.client === client;
    return isAfterAnswer || [...this.#open].some((open) => isOther(open) && Math.abs(open.atMs - atMs) <= beforeMs);
  }
}

/** The map is in order of the last use. */
function remember<V>(map: Map<string, V>, key: string, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > max && oldest !== undefined) map.delete(oldest);
}
