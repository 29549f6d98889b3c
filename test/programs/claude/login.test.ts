import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installClaude } from '../../support/agents/claude-service.js';
import { type LoginTrialResult, startWithLogin, tryLogin } from '../../support/agents/login-trial.js';
import { conversationOf, echoes, type MessagesApi, startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { TokenEndpoint } from '../../support/agents/token-endpoint.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { keyHeaders, keysFileOf } from '../../support/service/accounts-lab.js';

const hourMs = 3_600_000;
/** Delays of the endpoint's first responses, in milliseconds. */
const delays = [300, 0, 1000, 0, 0, 2500, 0, 100];
const delayMs = (refresh: number) => delays[refresh % 100] ?? 0;

/** Refreshes of the logins of four accounts. LOGIN_REFRESHES=100 tests more. */
const accountRefreshes = Number(process.env.LOGIN_REFRESHES ?? 16);
const perRestart = 8;
/** Names of people, each with an account of this name; nobody else owns the account `team`. */
const people = ['ada', 'bob', 'carol', 'team'];

let api: MessagesApi;

beforeAll(async () => void (await installClaude()), 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
  api.behave = echoes;
});
afterEach(() => api.close());

function lastToken(): string | undefined {
  return api.requests.at(-1)?.headers.authorization;
}

/** Checks that jobs were answered, and that none has failed for another reason than a cut or a drain. */
function expectOrderlyJobs({ jobs }: LoginTrialResult): void {
  expect(jobs.get(200)).toBeGreaterThan(0);
  expect([...jobs.keys()].filter((status) => ![0, 200, 503, 504].includes(status))).toEqual([]);
}

describe('The login files of claude', () => {
  it('survive 8 renewals during jobs, checks, cancellations, timeouts, drains and restarts', async () => {
    // Claude renews a token that expires within 300,000 ms.
    const livesMs = (token: number) => (token % 10 === 0 ? 304_000 : 300_300);
    await using endpoint = await TokenEndpoint.start({ livesMs, delayMs });
    const result = await tryLogin(api, endpoint, { refreshes: 8, endsAt: [4] });
    expect(endpoint.refused).toBe(0);
    expect(await endpoint.login.isStored()).toBe(true);
    expectOrderlyJobs(result);
  });

  it(
    `of four accounts survive ${accountRefreshes} renewals, also with killed workers, and serve only their owners`,
    async () => {
      const livesMs = (token: number) => (token % 4 === 0 ? 308_000 : 302_500); // time for jobs between the renewals
      await using endpoint = await TokenEndpoint.start({ livesMs, delayMs, logins: people });
      const path = (name: string) => join(endpoint.home, name);
      const owners = (name: string) => (name === 'team' ? '' : `owners=key:${name}`);
      const lines = endpoint.logins.map(({ name, home }) => `${name} claude home=${home} ${owners(name)}\n`);
      await writeFile(path('accounts'), lines.join(''));
      await writeFile(path('keys'), keysFileOf(Object.fromEntries(people.map((name) => [name, '']))), { mode: 0o600 });
      const files = { MODEL_API_ACCOUNTS_FILE: path('accounts'), MODEL_API_KEYS_FILE: path('keys') };
      const result = await tryLogin(api, endpoint, {
        refreshes: accountRefreshes,
        endsAt: Array.from(
          { length: Math.ceil(accountRefreshes / perRestart) - 1 },
          (_, index) => (index + 1) * perRestart,
        ),
        people: Object.fromEntries(people.map((name) => [name, keyHeaders(name)])),
        env: { ...files, MODEL_API_STANDBY: '1' },
        killsWorkers: true,
      });
      const asked = api.requests.map((request) => ({
        person:
          conversationOf(request)
            .findLast(({ role }) => role === 'user')
            ?.text.split(' ')
            .at(-1) ?? '',
        token: request.headers.authorization ?? '',
      }));
      const wrong = asked.filter(({ person, token }) => !new RegExp(`^Bearer sk-ant-oat01-${person}\\d+$`).test(token));
      process.stdout.write(
        `${endpoint.refreshes} renewals of ${endpoint.logins.map(({ name, refreshes }) => `${name} ${refreshes}`)}; ` +
          `${endpoint.refused} refused; ${asked.length} requests, ${wrong.length} with a wrong token; ` +
          `${result.kills} killed workers; jobs by status ${JSON.stringify([...result.jobs])}\n`,
      );
      expect(endpoint.refused).toBe(0);
      for (const login of endpoint.logins) expect([login.name, await login.isStored()]).toEqual([login.name, true]);
      expect(wrong).toEqual([]);
      expect(new Set(asked.map(({ person }) => person)).size).toBeGreaterThan(1);
      expect(Math.min(...endpoint.logins.map(({ refreshes }) => refreshes))).toBeGreaterThan(0);
      expectOrderlyJobs(result);
    },
    120_000 + 6000 * accountRefreshes,
  );

  it.each([
    ['its workers end all other processes at once', true, false],
    ['the next start waits, without cgroups', false, true],
  ])('survive a kill of the service in the middle of a renewal: %s', async (_, hasCgroups, killsWorkers) => {
    await using otherPlace = await temporaryFolder();
    await using endpoint = await TokenEndpoint.start({
      livesMs: (token) => (token === 0 ? 300_300 : hourMs),
      delayMs: () => 4000,
    });
    const settings = { MODEL_API_CGROUP: hasCgroups ? 'auto' : 'off', TMPDIR: endpoint.home, MODEL_API_WORKERS: '2' };
    await using killed = await startWithLogin(api, endpoint, settings);
    await until(() => endpoint.refreshes === 1, 'the renewal to begin');
    const pids = [killed.pid, ...(killsWorkers ? await killed.workers() : [])];
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await killed.exited;
    expect(await endpoint.login.isStored()).toBe(false);
    // Another service shares only the cgroup with the killed one, whose folders it does not know.
    await using other = await startWithLogin(api, endpoint, { ...settings, TMPDIR: otherPlace.path });
    await using service = await startWithLogin(api, endpoint, settings);
    for (const each of [other, service]) expect((await each.post('/ask', { prompt: 'Hello' })).status).toBe(200);
    expect([endpoint.refreshes, endpoint.refused, await endpoint.login.isStored()]).toEqual([1, 0, true]);
    await until(
      async () => (await killed.jobProcesses()).length === 0,
      'the end of the processes of the first service',
    );
  });

  it('are read again by waiting processes after another process has renewed the login', async () => {
    await using endpoint = await TokenEndpoint.start({ livesMs: () => hourMs, delayMs: () => 0 });
    const { login } = endpoint;
    await using service = await startWithLogin(api, endpoint, { MODEL_API_STANDBY: '1' });
    const { body } = await service.post('/chat', { message: 'one' });
    expect(lastToken()).toBe(`Bearer ${login.accessToken}`);
    await until(async () => (await metric(service, 'cli_processes{state="standby"}')) === 1, 'standby');
    const hits = await metric(service, 'standby_total{result="hit"}');
    login.refreshes++;
    await login.store(hourMs);
    await service.post('/chat', { message: 'two', conversation_id: body.conversation_id });
    expect(lastToken()).toBe(`Bearer ${login.accessToken}`);
    await service.post('/ask', { prompt: 'three' });
    expect(lastToken()).toBe(`Bearer ${login.accessToken}`);
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(1);
    expect(await metric(service, 'standby_total{result="hit"}')).toBe(hits + 1);
  });
});
