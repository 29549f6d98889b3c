import { consolePart } from '../../support/clients/console-parts.js';

interface AccountCardParts {
  standingOf(account: object): { readonly tone: string; readonly label: string };
}

describe('The state of an account on the page Set-up', () => {
  const parts = consolePart<AccountCardParts>('setup/accounts.mjs');
  const ready = { status: 'ready', breaker: { state: 'closed' }, jobs: 0, max_jobs: null, needs_login: false };

  it.each([
    [{}, 'good', 'ready'],
    [{ jobs: 1 }, 'good', 'ready, 1 job'],
    [{ jobs: 3, max_jobs: 2 }, 'good', 'ready, 3 jobs, at most 2 at once'],
    [{ status: 'unknown' }, 'idle', 'not checked yet'],
    [{ status: 'not_ready' }, 'bad', 'not ready'],
    [{ status: 'not_ready', needs_login: true }, 'bad', 'needs a login'],
    [{ status: 'not_ready', breaker: { state: 'open', reason: 'quota' } }, 'bad', 'quota used up'],
    [{ breaker: { state: 'half_open', reason: 'quota' } }, 'warn', 'the next job is a trial'],
    [{ breaker: { state: 'open', reason: 'auth' }, needs_login: true }, 'bad', 'needs a login'],
  ])('for %j is %s: %s', async (account, tone, label) => {
    expect((await parts).standingOf({ ...ready, ...account })).toEqual({ tone, label });
  });
});
