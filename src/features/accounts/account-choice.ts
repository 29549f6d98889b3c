import type { Account } from '../../primary/cli/model-cli.js';
import { type ClientText, holderOf, optionHolder } from '../../shared/client.js';

/** Login of a model CLI as the choice sees it. */
interface OwnedLogin {
  readonly account: Pick<Account, 'name' | 'owners'>;
}

/** State of an account that decides which of several eligible ones serves a job. */
export interface AccountState {
  /** Whether its breaker would refuse the job. */
  readonly isRefused: boolean;
  /** Whether its last readiness check has failed. */
  readonly isNotReady: boolean;
  /** Whether one of its processes waits for the next turn of the job's conversation. */
  readonly hasSession: boolean;
  /** Whether it had the last turn of the job's conversation. */
  readonly hadTurn: boolean;
  /** Number of its waiting and running jobs. */
  readonly jobs: number;
  /** Maximum number of its running jobs; null for no limit. */
  readonly maxRunning: number | null;
  /** Whether it serves only while all others cannot. */
  readonly isSpare: boolean;
  /**
   * Its next turn among the accounts of the client, and the number of jobs that it gets in relation to others; null if the
   * accounts do not share the jobs.
   */
  readonly share: { readonly turn: number; readonly weight: number } | null;
}

/** Account of a job, and why it was chosen, as the end of a sentence after *because*. */
interface PickedAccount<A> {
  readonly account: A;
  readonly reason: string;
}

/**
 * Returns the accounts of one CLI that may serve a client, the preferred one first: accounts that the client owns, else
 * accounts that its key names, else accounts without owners. An account with owners serves no other client.
 * `keyAccounts`: names in the key of the client; null if it names none. `isElsewhere`: whether another CLI has the
 * account. If a key names only accounts of other CLIs, it does not limit this CLI; an unknown name does.
 */
export function eligibleAccounts<A extends OwnedLogin>(
  client: ClientText,
  accounts: readonly A[],
  keyAccounts: readonly string[] | null,
  isElsewhere: (name: string) => boolean,
): readonly A[] {
  for (const owner of new Set([client, optionHolder(client), holderOf(client)])) {
    const owned = accounts.filter(({ account }) => account.owners.includes(owner));
    if (owned.length > 0) return owned;
  }
  const isOpen = ({ account }: A) => account.owners.length === 0;
  if (keyAccounts === null || keyAccounts.every(isElsewhere)) return accounts.filter(isOpen);
  return keyAccounts.flatMap((name) => accounts.filter((each) => each.account.name === name && isOpen(each)));
}

/**
 * Returns the account that serves a job; null if no account is eligible. Usable accounts come before others. Of equally
 * usable accounts, the first choice is the account whose process has the conversation, then the account of its last
 * turn, then an account below its limit of jobs. Accounts that share jobs take turns; others are used in their order.
 */
export function pickAccount<A>(eligible: readonly A[], stateOf: (account: A) => AccountState): PickedAccount<A> | null {
  const ranked = eligible.map((account) => {
    const state = stateOf(account);
    return { account, state, rank: rankOf(state) };
  });
  // the sort is stable, so equal accounts keep their order
  const [first, ...others] = ranked.toSorted((a, b) => compare(a.rank, b.rank));
  if (first === undefined) return null;
  const left = others.filter(({ rank }) => compare(rank.slice(0, turnAt), first.rank.slice(0, turnAt)) === 0);
  return { account: first.account, reason: reasonOf(first.state, others.length, left.length) };
}

/** Returns numbers to compare one by one; the smaller is preferred. */
function rankOf(state: AccountState): readonly number[] {
  const { isRefused, isNotReady, hasSession, hadTurn, jobs, maxRunning, isSpare, share } = state;
  const load = maxRunning === null ? 0 : jobs / maxRunning;
  const distance = hasSession ? 0 : hadTurn && !isSpare ? 1 : 2;
  const { turn, weight } = share ?? { turn: 0, weight: 0 };
  return [Number(isRefused), Number(isNotReady), distance, load < 1 ? 0 : load, Number(isSpare), turn, -weight];
}

/** Position of the turn in the rank: accounts whose numbers before it are equal take turns. */
const turnAt = 5;

/** Gives no figures: only owners and administrators see how much of a quota is left. */
function reasonOf({ hasSession, hadTurn, isSpare, share }: AccountState, others: number, left: number): string {
  if (others === 0) return 'it is the only one that may serve its client';
  if (hasSession || (hadTurn && !isSpare)) return 'it had the last turn of the conversation';
  if (left === 0) return 'the others are blocked, not ready, at their limit or spare';
  return share === null
    ? 'it is the first usable one in the order of the key or the file'
    : 'it was its turn by what is left of the quotas';
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) if (value !== b[index]) return value - (b[index] ?? 0);
  return 0;
}
