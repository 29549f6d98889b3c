import { tryLogin } from '../test/support/agents/login-trial.js';
import { startMessagesApi } from '../test/support/agents/messages-api-stub.js';
import { TokenEndpoint } from '../test/support/agents/token-endpoint.js';
import type { Row } from './support/table.js';

const perRound = 20;
const maxRefreshes = 200;
const perRestart = 8;
const maxDelayS = 20;
/** Step that distributes the delays over all seconds, in the same order each time. */
const stride = 8;

/**
 * Tests the login of the real claude in files, with tokens that are due for renewal at once: 20 renewals per round, at
 * most 200.
 */
export async function login(rounds: number): Promise<Row[]> {
  const refreshes = Math.min(rounds * perRound, maxRefreshes);
  await using api = await startMessagesApi();
  const livesMs = (token: number) => (token % perRestart === 0 ? 304_000 : 300_300); // claude renews at 300,000
  const delayMs = (refresh: number) => ((refresh * stride) % (maxDelayS + 1)) * 1000;
  await using endpoint = await TokenEndpoint.start({ livesMs, delayMs });
  const restarts = Math.ceil(refreshes / perRestart) - 1;
  const endsAt = Array.from({ length: restarts }, (_, restart) => (restart + 1) * perRestart);
  const { jobs } = await tryLogin(api, endpoint, { refreshes, endsAt });
  const isLost = endpoint.refused > 0 || !(await endpoint.login.isStored());
  const count = (...statuses: readonly number[]) => statuses.reduce((sum, each) => sum + (jobs.get(each) ?? 0), 0);
  const total = [...jobs.values()].reduce((sum, each) => sum + each, 0);
  return [
    {
      question: `Logins lost in ${refreshes} refreshes with 4 slots, 3 standby, checks, cancels, time-outs and ${restarts} restarts; the endpoint answers after 0 to ${maxDelayS} s`,
      target: '0',
      measured: `${isLost ? 1 : 0} after ${endpoint.refreshes} refreshes`,
      holds: !isLost && endpoint.refreshes >= refreshes,
    },
    {
      question:
        'Jobs meanwhile: answered, timed out (also those that were to), left by their client, refused in a drain, other',
      target: '–',
      measured: `${count(200)}, ${count(504)}, ${count(0)}, ${count(503)}, ${total - count(200, 504, 0, 503)}`,
      holds: null,
    },
  ];
}
