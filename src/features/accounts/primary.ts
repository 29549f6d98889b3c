import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import { figuresByAccount } from '../../primary/observe/state-metrics.js';
import { breakerBodyOf } from '../../primary/observe/status.js';
import type { AccountBody, AccountList } from '../../shared/api/accounts.js';
import { type ClientText, holderOf, optionHolder } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { weightOf } from './quota-share.js';
import { type calls, metrics } from './shared.js';

export const createAccountsPart: CreatePrimaryPart = ({ clis, host: { clock } }) => {
  const handlers: Handlers<typeof calls> = {
    listAccounts: ({ owner, withOpen }) => accountList(clis, clock, owner, withOpen),
  };
  const named = () => clis.filter(({ account }) => account.name !== null);
  const read = () => figuresByAccount(named(), (cli) => weightNow(cli, clock));
  return { handlers, gauges: [{ name: 'account_weight', ...metrics.account_weight, read }] };
};

function weightNow({ health }: Pick<PrimaryCore['clis'][number], 'health'>, clock: Pick<Clock, 'now'>): number {
  return Math.round(weightOf(health.windows.current, '', clock.now()) * 100) / 100;
}

/**
 * Returns all accounts, or the accounts that this client owns. `withOpen`: also the accounts without owners.
 */
export function accountList(
  clis: PrimaryCore['clis'],
  clock: Pick<Clock, 'now'>,
  owner: ClientText | null,
  withOpen: boolean,
): AccountList {
  const bodies = clis.map((cli) => accountBodyOf(cli, clock));
  if (owner === null) return { count: bodies.length, accounts: bodies };
  const ownNames = new Set<string>([owner, optionHolder(owner), holderOf(owner)]);
  const accounts = bodies.flatMap((body) => {
    const owners = body.owners.filter((each) => ownNames.has(each));
    return owners.length > 0 || (withOpen && body.owners.length === 0) ? [{ ...body, owners }] : [];
  });
  return { count: accounts.length, accounts };
}

function accountBodyOf(cli: PrimaryCore['clis'][number], clock: Pick<Clock, 'now'>): AccountBody {
  const { account } = cli;
  const { status, checkedAt, error } = cli.health.checks.current;
  return {
    name: account.name,
    cli: cli.name,
    owners: [...account.owners],
    status,
    checked_at: timeOrNull(checkedAt),
    ...(error !== null && { error }),
    needs_login: cli.health.needsLogin,
    jobs: cli.jobs,
    max_jobs: account.maxRunning,
    spare: account.isSpare,
    weight: weightNow(cli, clock),
    last_used_at: timeOrNull(cli.lastUsedAt),
    breaker: breakerBodyOf([cli]),
  };
}

function timeOrNull(at: number | null): string | null {
  return at === null ? null : timestamp(at);
}
