import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import { breakerBodyOf } from '../../primary/observe/status.js';
import type { AccountBody, AccountList } from '../../shared/api/accounts.js';
import { holderOf, optionHolder } from '../../shared/client.js';
import { timestamp } from '../../shared/clock.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { calls } from './shared.js';

export const createAccountsPart: CreatePrimaryPart = ({ clis }) => {
  const handlers: Handlers<typeof calls> = {
    listAccounts: ({ owner, withOpen }) => accountList(clis, owner, withOpen),
  };
  return { handlers };
};

/**
 * Returns all accounts, or the accounts that this client owns. `withOpen`: also the accounts without owners.
 */
export function accountList(clis: PrimaryCore['clis'], owner: string | null, withOpen: boolean): AccountList {
  const bodies = clis.map(accountBodyOf);
  if (owner === null) return { count: bodies.length, accounts: bodies };
  const ownNames = new Set([owner, optionHolder(owner), holderOf(owner)]);
  const accounts = bodies.flatMap((body) => {
    const owners = body.owners.filter((each) => ownNames.has(each));
    return owners.length > 0 || (withOpen && body.owners.length === 0) ? [{ ...body, owners }] : [];
  });
  return { count: accounts.length, accounts };
}

function accountBodyOf(cli: PrimaryCore['clis'][number]): AccountBody {
  const { status, checkedAt, error } = cli.health.checks.current;
  return {
    name: cli.account?.name ?? null,
    cli: cli.name,
    owners: [...(cli.account?.owners ?? [])],
    status,
    checked_at: timeOrNull(checkedAt),
    ...(error !== null && { error }),
    needs_login: cli.health.needsLogin,
    jobs: cli.jobs,
    max_jobs: cli.account?.maxRunning ?? null,
    last_used_at: timeOrNull(cli.lastUsedAt),
    breaker: breakerBodyOf([cli]),
  };
}

function timeOrNull(at: number | null): string | null {
  return at === null ? null : timestamp(at);
}
