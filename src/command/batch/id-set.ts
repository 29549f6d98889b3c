import { createHash } from 'node:crypto';

const smallest = 1024;
const maxLoad = 0.7;

/**
 * Owns a set of ids by 64 bits of their SHA-256: at most 23 bytes for each, however long they are. Of ten million ids, two
 * are taken for the same with a probability of 0.000003.
 */
export class IdSet {
  /** Two numbers a place; both are 0 where it is free. */
  #places = new Uint32Array(2 * smallest);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(id: string): boolean {
    const [high, low] = halvesOf(id);
    return this.#at(this.#placeOf(high, low)) !== 0;
  }

  /** Returns whether the id is new. */
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

  /** Where it is, else the free place where it belongs. */
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

/** The second one is never 0. */
function halvesOf(id: string): [number, number] {
  const digest = createHash('sha256').update(id).digest();
  return [digest.readUInt32LE(0), digest.readUInt32LE(4) || 1];
}
