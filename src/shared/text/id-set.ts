import { createHash } from 'node:crypto';

const smallest = 1024;
const maxLoad = 0.7;

/**
 * Set of IDs that stores 64 bits of the SHA-256 of each: at most 23 bytes per ID of any length. For ten million IDs,
 * the probability that two of them collide is 0.000003.
 */
export class IdSet {
  /** Hash table with two numbers per entry. A free entry has two zeros. */
  #places = new Uint32Array(2 * smallest);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(id: string): boolean {
    const [high, low] = halvesOf(id);
    return this.#at(this.#placeOf(high, low)) !== 0;
  }

  /** Returns whether the ID is new. */
  add(id: string): boolean {
    const [high, low] = halvesOf(id);
    const place = this.#placeOf(high, low);
    if (this.#at(place) !== 0) return false;
    this.#places.set([high, low], place);
    this.#size++;
    if (this.#size > (this.#places.length / 2) * maxLoad) this.#grow();
    return true;
  }

  #at(place: number): number {
    return this.#places[place + 1] ?? 0;
  }

  /** Returns the index of the ID's entry, or of the free entry for this ID. */
  #placeOf(high: number, low: number): number {
    const last = this.#places.length - 2;
    let place = (high * 2) & last;
    while (this.#at(place) !== 0 && !(this.#places[place] === high && this.#at(place) === low)) {
      place = (place + 2) & last;
    }
    return place;
  }

  #grow(): void {
    const before = this.#places;
    this.#places = new Uint32Array(before.length * 2);
    for (let place = 0; place < before.length; place += 2) {
      const [high = 0, low = 0] = [before[place], before[place + 1]];
      if (low !== 0) this.#places.set([high, low], this.#placeOf(high, low));
    }
  }
}

/** Returns 64 bits of the hash as two numbers. The second number is never 0, which marks a free entry. */
function halvesOf(id: string): [number, number] {
  const digest = createHash('sha256').update(id).digest();
  return [digest.readUInt32LE(0), digest.readUInt32LE(4) || 1];
}
