import { createAccountsPart } from '../../../../src/features/accounts/primary.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { loginOf } from '../../../support/agents/logins.js';

function account(name: string, ...owners: ClientText[]) {
  const checks = { current: { status: 'ready', checkedAt: 0, error: null } };
  const closed = { state: 'closed', model: null, reason: null, since: null, until: null };
  const health = { checks, circuits: { status: [closed] }, windows: { current: [] }, needsLogin: false };
  return { ...loginOf('claude', { name, owners }), health, publicName: () => null, jobs: 0, lastUsedAt: null };
}

const clis = [account('team'), account('ada', 'sso ada', 'key ada'), account('bob', 'user bob')];
const hooks = new FeatureHooks([
  createAccountsPart({ clis, host: { clock: { now: () => 0 } } } as unknown as PrimaryCore),
]);
const list = (owner: string | null, withOpen: boolean) => hooks.handlers.listAccounts?.({ owner, withOpen } as never);

describe('An account with an owner', () => {
  it.each<[client: string, withOpen: boolean, seen: readonly object[]]>([
    ['sso ada/laptop~1', false, [{ name: 'ada', owners: ['sso ada'] }]],
    ['key ada/phone', false, [{ name: 'ada', owners: ['key ada'] }]],
    ['sso bob/ada~1', false, []],
    ['user bob', true, [{ name: 'team' }, { name: 'bob', owners: ['user bob'] }]],
    ['user ada', true, [{ name: 'team', owners: [] }]],
  ])('is shown to its owner, and to nobody else who is no administrator: %s', (client, withOpen, seen) => {
    expect(list(client, withOpen)).toMatchObject({ count: seen.length, accounts: seen });
  });

  it('is shown to an administrator with all its owners', () => {
    const all = [{ owners: [] }, { owners: ['sso ada', 'key ada'] }, { owners: ['user bob'] }];
    expect(list(null, false)).toMatchObject({ count: 3, accounts: all });
  });
});
