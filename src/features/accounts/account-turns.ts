/**
 * Turns of the accounts that may serve the same clients. An account with twice the weight gets twice as many jobs. Each
 * job counts when it is admitted, so that many jobs between two reports of a quota do not all go to one account. An account
 * that could not be used has no turns to catch up on.
 */
export class AccountTurns<A extends object> {
  readonly #next = new WeakMap<A, number>();
  /** Turn of the last job. */
  #now = 0;

  /** Returns the next turn of an account. The account with the smallest one is next. */
  nextOf(account: A): number {
    return Math.max(this.#now, this.#next.get(account) ?? 0);
  }

  /** Counts an admitted job. */
  countJob(account: A, weight: number): void {
    const turn = this.nextOf(account);
    this.#next.set(account, turn + 1 / weight);
    this.#now = Math.max(this.#now, turn);
  }
}
