import { holderOf, optionHolder } from '../../shared/client.js';

/** Account of a model CLI as the choice sees it. */
export interface OwnedAccount {
  /** Name of the account; empty for the login of the service itself. */
  readonly name: string;
  readonly owners: readonly string[];
}

/** State of an account that decides which of several eligible ones serves a job. */
export interface AccountState {
  /** Whether its breaker would refuse the job. */
  readonly isRefused: boolean;
  /** Whether its last readiness check has failed. */
  readonly isNotReady: boolean;
  /** Whether one of its processes waits for the next turn of the job's conversation. */
  readonly hasSession: boolean;
  /** Number of its waiting and running jobs. */
  readonly jobs: number;
  /** Maximum number of its running jobs; null for no limit. */
  readonly maxRunning: number | null;
}

/**
 * Returns the accounts of one CLI that may serve a client, the preferred one first: accounts that the client owns, else
 * accounts that its key names, else accounts without owners. An account with owners serves no other client.
 * `keyAccounts`: names in the key of the client; null if it names none. `isElsewhere`: whether another CLI has the
 * account. If a key names only accounts of other CLIs, it does not limit this CLI; an unknown name does.
 */
export function eligibleAccounts<A extends OwnedAccount>(
  client: string,
  accounts: readonly A[],
  keyAccounts: readonly string[] | null,
  isElsewhere: (name: string) => boolean,
): readonly A[] {
  for (const owner of new Set([client, optionHolder(client), holderOf(client)])) {
    const owned = accounts.filter(({ owners }) => owners.includes(owner));
    if (owned.length > 0) return owned;
  }
  const isOpen = ({ owners }: A) => owners.length === 0;
  if (keyAccounts === null || keyAccounts.every(isElsewhere)) return accounts.filter(isOpen);
  return keyAccounts.flatMap((name) => accounts.filter((account) => account.name === name && isOpen(account)));
}

/**
 * Returns the account that serves a job: of the usable ones the one with the process of the conversation, else the
 * first below its limit, else the one with the fewest jobs for its limit. Returns undefined if no account is eligible.
 */
export function pickAccount<A>(eligible: readonly A[], stateOf: (account: A) => AccountState): A | undefined {
  const ranked = eligible.map((account) => ({ account, rank: rankOf(stateOf(account)) }));
  // the sort is stable, so equal accounts keep their order
  return ranked.toSorted((a, b) => compare(a.rank, b.rank))[0]?.account;
}

/** Returns numbers to compare one by one; the smaller is preferred. */
function rankOf({ isRefused, isNotReady, hasSession, jobs, maxRunning }: AccountState): readonly number[] {
  const load = maxRunning === null ? 0 : jobs / maxRunning;
  return [Number(isRefused), Number(isNotReady), Number(!hasSession), load < 1 ? 0 : load];
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) if (value !== b[index]) return value - (b[index] ?? 0);
  return 0;
}
