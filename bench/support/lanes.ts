/** Pool that lends each object to one borrower at a time, and makes another object if all are lent. */
export class Lanes<T> {
  readonly all: T[] = [];
  readonly #idle: T[] = [];
  readonly #make: () => T;

  constructor(make: () => T) {
    this.#make = make;
  }

  async with<R>(use: (lane: T) => Promise<R>): Promise<R> {
    const lane = this.#idle.pop() ?? this.#add();
    const result = await use(lane);
    this.#idle.push(lane);
    return result;
  }

  #add(): T {
    const lane = this.#make();
    this.all.push(lane);
    return lane;
  }
}
