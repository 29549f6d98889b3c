import type { Conversation } from './conversation.js';

/** A run this long is followed by a new one; two neighbours that are together half as long become one. */
const maxRunLength = 256;

/**
 * Owns the order in which the conversations of one client were active, in runs of at most a few hundred. So even among a
 * million of them a place is found and removed in microseconds. Each has a higher `activity` than all before it.
 */
export class ActivityOrder {
  /** None is empty. */
  readonly #runs: Conversation[][] = [];

  append(conversation: Conversation): void {
    const last = this.#runs.at(-1);
    if (last !== undefined && last.length < maxRunLength) last.push(conversation);
    else this.#runs.push([conversation]);
  }

  /** For one that is in the order. Its `activity` is still what it was when it was appended. */
  remove({ activity }: Conversation): void {
    const at = this.#runAt(activity);
    const run = this.#runs[at] ?? [];
    run.splice(
      firstFrom(run, ({ activity: other }) => other >= activity),
      1,
    );
    if (run.length === 0) this.#runs.splice(at, 1);
    else this.#join(at);
  }

  /** The least recently active first. The order may not change during the iteration. */
  *[Symbol.iterator](): Generator<Conversation> {
    for (const run of this.#runs) yield* run;
  }

  /** The most recently active first, of those with a lower `activity` than this. The order may not change during the iteration. */
  *backwards(before: number): Generator<Conversation> {
    const first = Math.min(this.#runAt(before), this.#runs.length - 1);
    for (let at = first; at >= 0; at--) {
      const run = this.#runs[at] ?? [];
      for (let index = run.length - 1; index >= 0; index--) {
        const conversation = run[index];
        if (conversation !== undefined && conversation.activity < before) yield conversation;
      }
    }
  }

  /** The first run that ends with this activity or a later one. */
  #runAt(activity: number): number {
    return firstFrom(this.#runs, (run) => (run.at(-1)?.activity ?? 0) >= activity);
  }

  #join(at: number): void {
    const [run = [], next] = this.#runs.slice(at, at + 2);
    if (next !== undefined && run.length + next.length <= maxRunLength / 2) this.#runs.splice(at, 2, [...run, ...next]);
  }
}

/** The index of the first item that fits, as all after it do; the length if none fits. */
function firstFrom<T>(sorted: readonly T[], fits: (item: T) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(sorted[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}
