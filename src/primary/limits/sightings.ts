interface Sighting {
  readonly client: string;
  readonly atMs: number;
}

/** Owns when clients were last seen, as far as it takes to tell each of them how long ago another one was. */
export class Sightings {
  #last: Sighting | null = null;
  /** The latest of a client that is not the last one's. */
  #other: Sighting | null = null;

  saw(client: string, nowMs: number): void {
    if (this.#last !== null && this.#last.client !== client) this.#other = this.#last;
    this.#last = { client, atMs: nowMs };
  }

  /** Milliseconds since any other client was seen; infinite where none ever was. */
  sinceOthersThan(client: string, nowMs: number): number {
    const seen = this.#last?.client === client ? this.#other : this.#last;
    return seen === null ? Number.POSITIVE_INFINITY : nowMs - seen.atMs;
  }
}
