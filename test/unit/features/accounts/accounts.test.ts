import {
  type AccountsSource,
  accountsListener,
  CliAccounts,
  noAccounts,
  ownerWarnings,
  type PreparedAccounts,
} from '../../../../src/features/accounts/accounts.js';
import { readAccountsFile } from '../../../../src/features/accounts/accounts-file.js';
import { LoginFence } from '../../../../src/features/accounts/login-fence.js';
import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import { plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';
import type { ModelCli } from '../../../../src/primary/cli/model-cli.js';
import { ModelRouter } from '../../../../src/primary/cli/route.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { echoCli, modelClisOf } from '../../../support/agents/model-clis.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { jobFailed, jobRequest } from '../../../support/jobs/job-records.js';
import { entrant, TestRoom } from '../../../support/jobs/test-room.js';

const named = [echoCli('claude'), echoCli('codex')] as const;
const never = new AbortController().signal;

/** Prepares accounts without checking their HOMEs. */
function prepared(text: string): PreparedAccounts {
  const { accounts: lines, ...content } = readAccountsFile(text);
  const accounts = lines.map((line) => ({
    line,
    realHome: line.home,
    cli: line.cli,
    adapter: (named.find(({ name }) => name === line.cli) ?? named[0]).adapter,
    env: { HOME: line.home ?? '' },
    cliEnv: [],
    token: line.tokenFile === null ? null : 'a-token',
    findFault: async () => (line.name === 'gone' ? 'the HOME does not exist' : null),
  }));
  return { ...content, accounts };
}

async function createAccounts(
  text: string,
  keyAccounts: Readonly<Record<string, readonly string[]>> = {},
  isShared = true,
) {
  const made = await modelClisOf(named);
  const accounts = new CliAccounts(
    made.clis,
    made.accountParts,
    (client) => keyAccounts[client] ?? null,
    prepared(text),
    isShared,
  );
  const router = new ModelRouter(made.names, made.clis, undefined, accounts);
  const labels = () => accounts.clis.map(({ label }) => label);
  const serves = (client: ClientText, model = 'claude') => router.route({ model, client }).cli.label;
  const job = { sessionId: () => null, circuit: '', account: null };
  const chosen = (client: ClientText) => accounts.choose(made.clis[0], { ...job, client })?.cli.label ?? 'nobody';
  const dispose = async () => {
    for (const { health, pool } of accounts.all) {
      health.stopChecks();
      await pool.closePool();
    }
    await made[Symbol.asyncDispose]();
  };
  return { made, accounts, router, labels, serves, chosen, [Symbol.asyncDispose]: dispose };
}

const ada = 'ada claude home=/a owners=key:ada\n';
const spareOfAda = 'spare codex home=/s owners=key:ada\n';
const team = 'team claude home=/t jobs=1\n';

function exhaust(cli: ModelCli): void {
  const request = jobRequest();
  const route = { circuit: '' };
  cli.health.circuits.recordAdmission({ request, route });
  const quota = { scope: 'account', resetsAt: null } as const;
  const failure = { code: 'cli_error', message: 'used up', reason: 'quota', quota } as const;
  cli.health.recordJobEnd({ request, route }, jobFailed('cli_error', { failure }), true);
}

describe('The accounts of the model CLIs', () => {
  it('are the logins of the service without an accounts file', async () => {
    await using made = await createAccounts('');
    expect(made.labels()).toEqual(['claude', 'codex']);
    expect([made.serves('key ada'), made.serves('key ada', 'codex/gpt')]).toEqual(['claude', 'codex']);
  });

  it('include the login of the service until one without owners replaces it', async () => {
    await using made = await createAccounts(ada);
    const { accounts, labels, serves } = made;
    expect([labels(), serves('key ada'), serves('key bob')]).toEqual([
      ['claude', 'claude@ada', 'codex'],
      'claude@ada',
      'claude',
    ]);
    accounts.replace(prepared(ada + team));
    expect([labels(), serves('key ada'), serves('key bob')]).toEqual([
      ['claude@ada', 'claude@team', 'codex'],
      'claude@ada',
      'claude@team',
    ]);
    accounts.replace(noAccounts);
    expect([labels(), serves('key ada')]).toEqual([['claude', 'codex'], 'claude']);
  });

  it('keep their state while only owners or limits change, and are new with another login', async () => {
    await using made = await createAccounts(ada);
    const { accounts } = made;
    const [before] = accounts.named;
    accounts.replace(prepared('ada claude home=/a owners=key:bob jobs=3\n'));
    expect(accounts.named[0]).toBe(before);
    expect([made.serves('key ada'), made.serves('key bob'), before?.account.maxRunning]).toEqual([
      'claude',
      'claude@ada',
      3,
    ]);
    exhaust(before as ModelCli);
    accounts.replace(prepared('ada claude home=/other owners=key:bob\n'));
    expect(accounts.named[0]).not.toBe(before);
    expect(accounts.named[0]?.health.circuits.isClosed).toBe(true);
    expect(before?.pool.keepsNoSessions).toBe(true);
  });

  it('count the running jobs of a login that had a fault in its line or another name, but not those of another login', async () => {
    await using made = await createAccounts(team);
    const { accounts } = made;
    const { room } = new TestRoom({ maxActive: 9 });
    const isWaiting = () => room.admit(entrant('key a', 1, { cli: accounts.named[0] as ModelCli })).isWaiting;
    using _ = accounts.named[0]?.countJob() as Disposable;
    expect(isWaiting()).toBe(false);
    for (const text of [`${team.trim()} spare=maybe\n`, team]) accounts.replace(prepared(text));
    expect(isWaiting()).toBe(true);
    accounts.replace(prepared(team.replace('team', 'all')));
    expect(isWaiting()).toBe(true);
    accounts.replace(prepared(team.replace('/t', '/other')));
    expect(isWaiting()).toBe(false);
  });

  it('refuse a client without an account, and serve the next one if the quota of the first is used up', async () => {
    await using made = await createAccounts(`${team}spare claude home=/s\n`, { 'key eve': ['typo'] });
    const { accounts, router, serves } = made;
    expect(() => router.checkAccount({ model: 'claude', client: 'key eve' })).toThrow(
      'no account of claude serves this client',
    );
    expect(() => router.checkAccount({ model: 'claude', client: 'key ada' })).not.toThrow();
    expect(serves('key ada')).toBe('claude@team');
    exhaust(accounts.named[0] as ModelCli);
    expect(serves('key ada')).toBe('claude@spare');
    expect(accounts.named.map(({ health }) => health.circuits.isClosed)).toEqual([false, true]);
  });

  it('share the jobs of a client by what is left of their quotas, and keep a conversation until they are removed', async () => {
    const file = `${ada}one claude home=/1\ntwo claude home=/2\n`;
    await using made = await createAccounts(file);
    const { accounts, router } = made;
    const ask = (conversationId: string | null = null, client: ClientText = 'key eve') => {
      const request = { model: 'claude', client, conversationId };
      const route = router.route(request);
      router.recordJob(route, request);
      return route;
    };
    const labels = (count: number) => Array.from({ length: count }, () => ask().cli.label).toSorted();
    expect(labels(4)).toEqual(['claude@one', 'claude@one', 'claude@two', 'claude@two']);
    const { now } = made.made.accountParts.host.clock;
    const window = {
      name: 'five_hour',
      status: 'allowed',
      utilization: 0.5,
      resetsAt: now() + 1.25 * 3_600_000,
    } as const;
    accounts.named[2]?.health.recordQuota([window]);
    const later = labels(30);
    expect(Math.abs(later.filter((label) => label === 'claude@two').length - 20)).toBeLessThanOrEqual(1);
    const before = ask('conversation');
    for (let at = 0; at < 5; at++) expect(ask('conversation').cli).toBe(before.cli);
    expect(ask('conversation').accountReason).toMatch('the last turn of the conversation');
    const [left, gone] = before.cli.account.name === 'one' ? ['two', 'one'] : ['one', 'two'];
    accounts.replace(prepared(`${ada}${left} claude home=/${left === 'one' ? 1 : 2}\n`));
    const moved = ask('conversation');
    expect([moved.cli.account.name, moved.accountReason]).toEqual([
      left,
      expect.stringContaining(`claude@${gone}, serves`),
    ]);
    expect(ask(null, 'key ada').cli.label).toBe('claude@ada');
  });

  it('serve in the order of the key or the file unless the operator lets them share the jobs', async () => {
    const text = 'team claude home=/a\npaid claude home=/b\n';
    await using made = await createAccounts(text, { 'key eve': ['paid', 'team'] }, false);
    const ask = (client: ClientText, conversation: string) => {
      const job = { client, sessionId: () => conversation, circuit: '', account: null };
      const chosen = made.accounts.choose(made.made.clis[0], job);
      if (chosen !== null) made.accounts.recordJob(chosen.cli, job);
      return chosen?.cli.label;
    };
    expect(['1', '2', '3'].map((id) => ask('key bob', id))).toEqual(Array(3).fill('claude@team'));
    expect(['4', '5', '6'].map((id) => ask('key eve', id))).toEqual(Array(3).fill('claude@paid'));
    expect(ask('key bob', '4')).toBe('claude@team');
  });

  it('have processes on standby and regular checks only while they are in use', async () => {
    await using made = await createAccounts(team);
    const [cli] = made.accounts.named as [ModelCli];
    expect([cli.isInUse, cli.lastUsedAt, made.accounts.unused.map(({ label }) => label)]).toEqual([
      false,
      null,
      ['claude'],
    ]);
    expect(made.accounts.unused[0]?.isInUse).toBe(false);
    using _job = cli.countJob();
    expect([cli.isInUse, cli.jobs]).toEqual([true, 1]);
    const lease = await cli.acquire(plainLaunch(null), null, never);
    await lease.release(null);
    expect(cli.lastUsedAt).not.toBeNull();
  });

  it('answer no job of another client as its fallback once they have got an owner', async () => {
    await using made = await createAccounts('team claude home=/t\nspare codex home=/s\n');
    const { router, accounts } = made;
    const request = { model: 'claude', client: 'key eve' as const };
    const fallback = router.findRoute('codex', null, request);
    expect(fallback?.cli.label).toBe('codex@spare');
    accounts.replace(prepared('team claude home=/t\nspare codex home=/s owners=key:ada\nopen codex home=/o\n'));
    expect(fallback && router.withAccount(fallback, request)?.cli.label).toBe('codex@open');
    accounts.replace(prepared('team claude home=/t\nspare codex home=/s owners=key:ada\n'));
    expect(fallback && router.withAccount(fallback, request)?.cli.label).toBe('codex');
    const keyed = new CliAccounts(made.made.clis, made.made.accountParts, () => ['spare'], prepared(spareOfAda));
    const strict = new ModelRouter(made.made.names, made.made.clis, undefined, keyed);
    expect(fallback && strict.withAccount(fallback, request)).toBeNull();
    for (const { health } of keyed.all) health.stopChecks();
  });

  it('have a warning if an owner is no API key', async () => {
    const text = `${ada}lab claude home=/l owners=key:lab/ada+key:adda+user:nobody\n${team}`;
    await using made = await createAccounts(text);
    expect(ownerWarnings(made.accounts.named, ['key ada', 'key lab'])).toEqual([
      'MODEL_API_ACCOUNTS_FILE: no API key has the name of an owner of lab: adda',
    ]);
  });

  it('keep the token of a removed account a secret, because its programs may still print it', async () => {
    await using made = await createAccounts('ada claude token-file=/token\n');
    made.accounts.replace(noAccounts);
    expect(made.accounts.secrets).toEqual([{ name: 'token of ada', value: 'a-token' }]);
  });

  it.each([
    ['that it has got while the service runs', prepared(ada + team)],
    ['that it has at the start', prepared(`${ada.trim()} jobs=many\n${team}`)],
  ])('hide the HOME of each account from the others, also while its line has a fault %s', async (_, first) => {
    await using made = await modelClisOf(named);
    const fence = new LoginFence({ env: 'env', perl: 'perl' }, null);
    const parts = { ...made.accountParts, host: { ...made.accountParts.host, fence } };
    const accounts = new CliAccounts(made.clis, parts, () => null, first);
    const { containments } = parts.host.termination;
    const startOfTeam = async () => {
      const inside = await fence.around(containments, { home: '/t' }).create(1, '');
      return inside.enter('model', []);
    };
    expect(await startOfTeam()).toMatchObject(['env', expect.arrayContaining(['/a', '/t', 'model'])]);
    for (const line of [`${ada.trim()} jobs=many`, 'ada claude', 'ada claude'])
      accounts.replace(prepared(`${line}\n${team}`));
    expect(await startOfTeam()).toMatchObject(['env', expect.arrayContaining(['/a', '/t', 'model'])]);
    for (const { health } of accounts.all) health.stopChecks();
  });

  it('are checked with their own login', async () => {
    await using made = await createAccounts('gone claude home=/gone\n');
    const [cli] = made.accounts.named as [ModelCli];
    expect(await cli.health.checks.runCheck('forced')).toMatchObject({
      cli: 'claude',
      account: 'gone',
      status: 'not_ready',
      error: 'the HOME does not exist',
    });
  });
});

const createListener = async (text: string) => {
  const made = await createAccounts(text);
  const log = new LogBook();
  const fileFaults = new FileFaults();
  const removals: string[][] = [];
  const prepare = async (changed: string) => prepared(changed);
  const source: AccountsSource = { path: '/accounts', read: async () => '', first: prepared(text), prepare };
  const onChange = (removed: readonly ModelCli[]) => void removals.push(removed.map(({ label }) => label));
  const listener = accountsListener(made.accounts, source, { onChange, fileFaults }, log);
  return { ...made, listener, log, fileFaults, removals };
};

describe('A changed accounts file', () => {
  it('is applied, except lines with a fault, and reports a fault once', async () => {
    await using made = await createListener(ada);
    const { listener, log, fileFaults } = made;
    await listener.read(`# a comment\n${ada}`);
    expect(await listener.read(`${ada}broken\n`)).toBe(false);
    expect(await listener.read(`${ada}broken\n`)).toBe(false);
    expect([made.chosen('key ada'), fileFaults.counts.accounts]).toEqual(['claude@ada', 1]);
    listener.unreadable(new Error('EACCES'));
    listener.unreadable(new Error('EACCES'));
    expect(made.chosen('key ada')).toBe('claude@ada');
    await listener.read(team);
    await listener.read(team);
    expect([made.chosen('key ada'), fileFaults.counts.accounts]).toEqual(['claude@team', 0]);
    expect(made.removals).toEqual([[], ['claude@ada']]);
    expect(log.entries.map(({ event, fields }) => [event, fields.error ?? fields.accounts])).toEqual([
      ['accounts_rejected', 'line 2: broken needs its model CLI, as in: broken claude'],
      ['accounts_loaded', 1],
      ['accounts_rejected', 'EACCES'],
      ['accounts_loaded', 1],
    ]);
  });

  it('removes an account and an owner although another line has a fault', async () => {
    await using made = await createListener(
      'ada claude home=/a owners=key:ada+key:bob\neve claude home=/e owners=key:eve\n',
    );
    await made.listener.read(`${ada}broken claude owners=key:max\n`);
    expect((['key ada', 'key bob', 'key eve'] as const).map(made.chosen)).toEqual(['claude@ada', 'claude', 'claude']);
    expect(made.labels()).not.toContain('claude@eve');
    expect(made.chosen('key max')).toBe('nobody');
  });

  it('lets no other login serve those whose line has a fault', async () => {
    await using made = await createListener(ada + team);
    await made.listener.read(`ada claude home=/a owners=key:ada+nobody\n${team}`);
    expect(made.chosen('key ada')).toBe('nobody');
    expect(made.chosen('key bob')).toBe('claude@team');
    await made.listener.read(`ada claude home=\n${team}`);
    expect(made.chosen('key ada')).toBe('nobody');
    await made.listener.read(`${ada}team claude\n`);
    expect(made.chosen('key ada')).toBe('claude@ada');
    expect(made.chosen('key bob')).toBe('nobody');
    await made.listener.read(ada + team);
    expect([made.chosen('key ada'), made.chosen('key bob')]).toEqual(['claude@ada', 'claude@team']);
  });

  it('changes nothing if it is half written', async () => {
    await using made = await createListener(ada + team);
    await made.listener.read('ada claude home=/a');
    expect([made.chosen('key ada'), made.chosen('key bob')]).toEqual(['claude@ada', 'claude@team']);
    expect(made.fileFaults.counts.accounts).toBe(1);
  });
});

/** Faults of a line of the accounts file that leave its name readable. */
const accountFaults: readonly (readonly [fault: string, change: (line: string) => string])[] = [
  ['an unknown option', (line) => `${line} colour=red`],
  ['an option that is given twice', (line) => `${line} jobs=1 jobs=2`],
  ['a number of jobs that is none', (line) => `${line} jobs=many`],
  ['a quote that is not closed', (line) => `${line} "`],
  ['no login', (line) => line.replace(/ home=\S+/, '')],
  ['two logins', (line) => `${line} token-file=/token`],
  ['a HOME that is no absolute path', (line) => line.replace('home=/', 'home=')],
  ['a blank in an option', (line) => line.replace('=/', '= /').replace('owners=', 'owners= ')],
  ['an option with a wrong name', (line) => line.replace('owners=', 'owner=').replace('home=', 'hom=')],
  ['owners without a kind', (line) => line.replace(/(owners=|\+)(key|made|user|sso):/g, '$1').replace('home=', 'home')],
  [
    'owners with capital letters',
    (line) => line.replace(/(key|made|user|sso):/g, (kind) => kind.toUpperCase()).replace(/( home)=/, '$1'),
  ],
  ['owners with commas', (line) => line.replace('+user', ',user').replace('home=', 'homes=')],
  ['no model CLI', (line) => line.replace(' claude', '')],
  ['an owner that is none', (line) => (line.includes('owners=') ? `${line}+nobody` : `${line} owners=`)],
];

describe('After a change of the accounts file', () => {
  const lines = {
    ada: 'ada claude home=/a owners=key:ada',
    made: 'made claude home=/m owners=made:ci~8f2a11',
    people: 'people claude home=/p owners=sso:eve+x@example.org+user:max',
    team: 'team claude home=/t',
  } as const;
  const served = {
    ada: ['key ada'],
    made: ['made ci~8f2a11'],
    people: ['sso eve+x@example.org', 'user max'],
    team: ['key bob', 'address local'],
  } as const;
  type Subject = keyof typeof lines;
  const subjects = Object.keys(lines) as Subject[];
  const cases = subjects.flatMap((subject) =>
    accountFaults.map(([fault, change]) => [subject, fault, change] as const),
  );
  const textOf = (changed: Partial<Record<Subject | 'old', string>>) =>
    `${Object.values({ ...lines, ...changed }).join('\n')}\n`;

  it.each(cases)(
    'the line of %s with %s serves nobody, no other line is lost, and the fault is visible',
    async (...each) => {
      const [subject, , change] = each;
      const old = 'old claude home=/o owners=key:old';
      await using made = await createListener(textOf({ old }));
      const serving = () => subjects.map((name) => served[name].map((client) => made.chosen(client)));
      const all = subjects.map((name) => served[name].map(() => `claude@${name}`));
      expect([serving(), made.chosen('key old')]).toEqual([all, 'claude@old']);
      await made.listener.read(textOf({ [subject]: change(lines[subject]) }));
      const closed = subjects.map((name) => served[name].map(() => (name === subject ? 'nobody' : `claude@${name}`)));
      expect([serving(), made.fileFaults.counts.accounts]).toEqual([closed, 1]);
      expect(made.labels()).not.toContain('claude@old');
      await made.listener.read(textOf({}));
      expect([serving(), made.fileFaults.counts.accounts]).toEqual([all, 0]);
    },
  );

  it.each(cases.filter(([subject]) => subject !== 'team'))(
    'a start with the line of %s with %s gives its owners no other login',
    async (...each) => {
      const [subject, , change] = each;
      await using made = await createAccounts(textOf({ [subject]: change(lines[subject]) }));
      expect(served[subject].map((client) => made.chosen(client))).toEqual(served[subject].map(() => 'nobody'));
    },
  );
});
