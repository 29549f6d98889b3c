import { chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFenceTools } from '../../../src/features/accounts/logins.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { pdfOf } from '../../support/basics/pdf.js';
import { randomNumbers } from '../../support/basics/random.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { killIfAlive } from '../../support/processes/processes.js';
import { AccountsLab } from '../../support/service/accounts-lab.js';
import { type Answer, script } from '../../support/service/service.js';

const seed = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);
const jobs = 200;
const lanes = 8;

const accounts = { team: '', ada: 'owners=key:ada', bob: 'owners=key:bob+user:bob jobs=1', spare: 'jobs=2' };
const people = { ada: '', bob: '', carol: '', dan: '', eve: 'accounts=spare', frank: 'accounts=spare+team' };
type Person = keyof typeof people;

/** Accounts that may serve each person. */
const allowed: Readonly<Record<Person, readonly string[]>> = {
  ada: ['ada'],
  bob: ['bob'],
  carol: ['team', 'spare'],
  dan: ['team', 'spare'],
  eve: ['spare'],
  frank: ['spare', 'team'],
};

function responseOf({ status, body }: Answer): unknown {
  return status === 200 ? body.response : [status, body.error];
}

describe('Accounts', () => {
  it(`never serve a job of another person, with kills and reloads at random moments: seed ${seed}`, async () => {
    await using lab = await AccountsLab.start(accounts, people, { MODEL_API_WORKERS: '2' });
    const { service } = lab;
    const random = randomNumbers(seed);
    const names = Object.keys(people) as Person[];
    let sent = 0;
    let ended = 0;
    let failed = 0;
    const lane = async () => {
      while (sent < jobs) {
        const number = sent++;
        const person = names[number % names.length] as Person;
        const answer = await lab.ask(person, `question ${number} of ${person}`).catch(() => null); // its worker was killed
        if (answer?.status === 200)
          expect(allowed[person].map((name) => `login of ${name}`)).toContain(answer.body.response);
        else failed++;
        ended++;
      }
    };
    const faults = async () => {
      for (let round = 0; sent < jobs; round++) {
        await until(() => ended >= 2 * round, 'two ended jobs'); // a slow machine must not lose more jobs than a fast one
        await new Promise((resolve) => setTimeout(resolve, random() * 80));
        const pids = await service.jobProcesses();
        const pid = pids[Math.floor(random() * pids.length)];
        if (pid !== undefined && random() < 0.7) killIfAlive(pid);
        if (round % 8 === 3) await lab.writeAccounts({ ...accounts, team: `jobs=${1 + Math.floor(random() * 4)}` });
        if (round % 8 === 5) await lab.writeAccounts({ ...accounts, broken: 'jobs=0' });
        if (round === 12) for (const pid of (await service.workers()).slice(0, 1)) killIfAlive(pid);
      }
    };
    await Promise.all([...Array.from({ length: lanes }, lane), faults()]);
    // a killed `cat` has read only a part of the question
    const record = (await lab.record()).filter(({ question }) =>
      names.some((name) => question.endsWith(` of ${name}`)),
    );
    const wrong = record.filter(({ login, question }) => {
      const person = question.split(' ').at(-1) as Person;
      return !allowed[person].some((name) => login === `login of ${name}`);
    });
    expect(record.length).toBeGreaterThan(jobs / 2);
    expect(wrong).toEqual([]);
    expect(new Set(record.map(({ login }) => login)).size).toBe(4);
    expect(failed).toBeLessThan(jobs / 2);
    await untilJobs(service, 0, 0);
  });

  it('are hidden from pdftotext, and from each other', async () => {
    if ((await findFenceTools(process.env.PATH ?? '')) === null) return;
    await using programs = await temporaryFolder();
    const path = join(programs.path, 'pdftotext');
    await using lab = await AccountsLab.start(
      { ada: 'owners=key:ada' },
      { ada: '', eve: '' },
      {
        PATH: `${programs.path}:${process.env.PATH}`,
        MODEL_API_CLI_COMMAND: 'cat',
      },
    );
    const home = lab.homeOf('ada');
    await writeFile(path, `#!/bin/sh\ncat >/dev/null\ncat ${home}/login || echo "the login is hidden"\n`);
    await chmod(path, 0o755);
    const files = [{ name: 'a.pdf', data: pdfOf().toString('base64') }];
    const { status, body } = await lab.service.post('/ask', { prompt: 'What?', files }, lab.headers('eve'));
    expect([status, body.response]).toEqual([200, expect.stringContaining('the login is hidden')]);
  });

  it('are refused alone if their lines have a fault, which the log names with its number', async () => {
    await using lab = await AccountsLab.start({ ada: 'owners=key:ada' }, { ada: '', eve: '' });
    expect(responseOf(await lab.ask('ada', 'who'))).toBe('login of ada');
    expect(responseOf(await lab.ask('eve', 'who'))).toBe('login of the service');
    await lab.writeText(
      `ada command home=${lab.homeOf('ada')} owners=key:ada\neve gpt home=/eve owners=key:eve\nlost\n`,
    );
    const { error } = await lab.service.log('accounts_rejected');
    expect(error).toBe(
      'line 3: lost needs its model CLI, as in: lost claude; line 2: the model CLI gpt of eve is not one of this service: command',
    );
    expect(responseOf(await lab.ask('ada', 'who'))).toBe('login of ada');
    expect((await lab.ask('eve', 'who')).status).toBe(403);
    await lab.writeAccounts({ ada: 'owners=key:ada', shared: '' });
    await lab.service.log('accounts_loaded', (record) => record.accounts === 2);
    expect(responseOf(await lab.ask('eve', 'who'))).toBe('login of shared');
    await lab.writeText('');
    await lab.service.log('accounts_loaded', (record) => record.accounts === 0);
    expect(responseOf(await lab.ask('ada', 'who'))).toBe('login of the service');
  });

  it('leave the good accounts if the file is removed, unreadable, cut off, too large or repeats lines', async () => {
    await using lab = await AccountsLab.start({ ada: 'owners=key:ada', team: '' }, { ada: '', eve: '' });
    const { service } = lab;
    const file = join(lab.folder.path, 'accounts');
    const good = await readFile(file, 'utf8');
    const cutOff = good.slice(0, good.indexOf(' owners'));
    const faults: [fault: string, cause: () => Promise<unknown>][] = [
      ['there is no such file or folder', () => rm(file)],
      ['it is a folder', () => mkdir(file)],
      ['the line break at its end is missing', () => rm(file, { recursive: true }).then(() => lab.writeText(cutOff))],
      ['it is larger than 256 KB', () => lab.writeText(`${good}#${'x'.repeat(300_000)}\n`)],
      ['another account already has the name ada (line 1)', () => lab.writeText(good + good)],
      ['bob has the login of ada', () => lab.writeText(`${good}bob command home=${lab.folder.path}/link\n`)],
      ['bob has the login of ada (line 1)', () => lab.writeText(`${good}bob command home=${lab.homeOf('ada')}\n`)],
    ];
    await symlink(lab.homeOf('ada'), join(lab.folder.path, 'link'));
    for (const [fault, cause] of faults) {
      await cause();
      await service.log('accounts_rejected', ({ error }) => String(error).includes(fault));
      const answers = [responseOf(await lab.ask('ada', 'who')), responseOf(await lab.ask('eve', 'who'))];
      expect([fault, ...answers]).toEqual([fault, 'login of ada', 'login of team']);
    }
    await lab.writeText(good);
    await service.log('accounts_loaded');
  });

  it('finish a running job if they are removed meanwhile, and report a HOME that cannot be used', async () => {
    await using lab = await AccountsLab.start(
      { ada: 'owners=key:ada', team: '' },
      { ada: '', root: 'scopes=ask+admin' },
    );
    const { service } = lab;
    const release = await lab.holdAnswers('ada');
    const running = lab.ask('ada', 'slowly');
    await untilJobs(service, 1, 0);
    await lab.writeAccounts({ team: '' });
    await service.log('accounts_loaded');
    expect(responseOf(await lab.ask('ada', 'who'))).toBe('login of team');
    await release();
    expect(responseOf(await running)).toBe('login of ada');
    await lab.writeAccounts({ ada: 'owners=key:nobody', team: '' });
    await service.log('accounts_loaded', ({ accounts }) => accounts === 2);
    await service.log('config_warning', ({ warning }) => /an owner of ada: nobody$/.test(String(warning)));
    expect(responseOf(await lab.ask('ada', 'who'))).toBe('login of team');
    await chmod(lab.homeOf('ada'), 0o750);
    await service.post('/health/recheck', '', lab.headers('root'));
    const { body } = await service.get('/accounts', lab.headers('root'));
    expect((body.accounts as { error?: string }[]).map(({ error }) => error)).toEqual([
      'other users can enter the HOME of the account ada: chmod 700 it',
      undefined,
    ]);
  });

  it('refuse a client whose key names an account of another, or none that exists', async () => {
    const keys = { ada: '', eve: 'accounts=ada', joe: 'accounts=typo' };
    await using lab = await AccountsLab.start({ ada: 'owners=key:ada', team: '' }, keys);
    for (const person of ['eve', 'joe']) {
      const { status, body } = await lab.ask(person, 'who');
      expect([status, body.error, body.message]).toEqual([
        403,
        'forbidden',
        'no account of command serves this client (MODEL_API_ACCOUNTS_FILE)',
      ]);
    }
    expect(await lab.record()).toEqual([{ login: '', question: '' }]);
  });

  it('pass waiting jobs on to another account when theirs gets another owner', async () => {
    await using lab = await AccountsLab.start({ ada: 'owners=key:ada jobs=1', team: '' }, { ada: '', bob: '' });
    const { service } = lab;
    const release = await lab.holdAnswers('ada');
    const running = lab.ask('ada', 'slowly');
    await untilJobs(service, 1, 0);
    const waiting = lab.ask('ada', 'waiting');
    await untilJobs(service, 1, 1);
    const headers = { ...lab.headers('ada'), prefer: 'respond-async' };
    const accepted = await service.post('/ask', { prompt: 'later' }, headers);
    expect(accepted.status).toBe(202);
    await lab.writeAccounts({ ada: 'owners=key:bob jobs=1', team: '' });
    expect(responseOf(await waiting)).toBe('login of team');
    const path = `/jobs/${accepted.body.job_id}`;
    const done = await until(async () => {
      const { body } = await service.get(path, lab.headers('ada'));
      return body.ended_at === null ? undefined : body;
    }, 'the background job');
    expect(JSON.stringify(done)).toContain('login of team');
    await release();
    expect(responseOf(await running)).toBe('login of ada');
    expect(responseOf(await lab.ask('bob', 'who'))).toBe('login of ada');
    expect(responseOf(await lab.ask('ada', 'who'))).toBe('login of team');
  });

  it('have their own limits of running jobs', async () => {
    await using lab = await AccountsLab.start({ team: 'jobs=1', spare: 'jobs=1' }, { ada: '' });
    const { service } = lab;
    const releases = [await lab.holdAnswers('team'), await lab.holdAnswers('spare')];
    const asked = ['slowly 1', 'slowly 2', 'slowly 3'].map((prompt) => lab.ask('ada', prompt));
    await untilJobs(service, 2, 1);
    for (const release of releases) await release();
    expect((await Promise.all(asked)).map(responseOf).toSorted()).toEqual([
      'login of spare',
      'login of team',
      'login of team',
    ]);
    const { body } = await service.get('/usage?group=account', lab.headers('ada'));
    const usage = body.usage as { readonly account: string; readonly jobs: Readonly<Record<string, number>> }[];
    expect(usage.map(({ account, jobs: { ok } }) => [account, ok])).toEqual([
      ['spare', 1],
      ['team', 2],
    ]);
    expect(await metric(service, 'cli_exits_total{cli="command",account="team",class="ok"}')).toBe(2);
  });

  it('are in no environment, error or log record of another account', async () => {
    await using lab = await AccountsLab.start(accounts, people, { MODEL_API_LOG_LEVEL: 'debug' });
    const { service } = lab;
    const answers = await Promise.all((['ada', 'bob', 'eve'] as const).map((person) => lab.ask(person, 'environment')));
    for (const [index, person] of (['ada', 'bob', 'spare'] as const).entries()) {
      const text = answers[index]?.text ?? '';
      expect(text).toContain(`HOME=${lab.homeOf(person)}`);
      const others = Object.keys(accounts).filter((name) => name !== person);
      expect(others.filter((name) => text.includes(lab.homeOf(name)))).toEqual([]);
      expect(text).not.toContain('MODEL_API_ACCOUNTS_FILE');
    }
    const records = service.logs.filter(({ account }) => account !== undefined);
    const mixed = records.filter(({ account, ...record }) => {
      const others = Object.keys(accounts).filter((name) => name !== account);
      return others.some((name) => JSON.stringify(record).includes(lab.homeOf(name)));
    });
    expect(mixed).toEqual([]);
  });

  it('keep their login from the processes of others, also from those of the login of the service', async () => {
    const isPossible = (await findFenceTools(process.env.PATH ?? '')) !== null;
    await using lab = await AccountsLab.start(
      { ada: 'owners=key:ada', bob: 'owners=key:bob' },
      { ada: '', bob: '', eve: '' },
    );
    const warnings = lab.service.logs.filter(({ warning }) => String(warning).startsWith('MODEL_API_ACCOUNTS_FILE'));
    expect(warnings).toHaveLength(isPossible ? 0 : 1);
    const peek = (person: string, account: string) => lab.ask(person, `peek ${lab.homeOf(account)}/login`);
    for (const [person, account] of [
      ['ada', 'bob'],
      ['bob', 'ada'],
      ['eve', 'ada'],
    ] as const)
      expect((await peek(person, account)).text.includes(`login of ${account}`)).toBe(!isPossible);
    await lab.writeAccounts({ ada: 'owners=key:ada', bob: 'owners=key:bob', new: 'owners=key:eve' });
    await lab.service.log('accounts_loaded');
    expect((await peek('ada', 'new')).text.includes('login of new')).toBe(!isPossible);
    for (const [person, account] of [
      ['ada', 'ada'],
      ['eve', 'new'],
    ] as const)
      expect(responseOf(await peek(person, account))).toBe(`login of ${account}`);
  });

  it('show nothing of their login to anybody else, however they fail', async () => {
    await using lab = await AccountsLab.start(
      { ada: 'owners=key:ada', bob: 'owners=key:bob', team: '' },
      { ada: '', bob: '', carol: '', operator: 'scopes=ask+admin' },
      {
        ...{ MODEL_API_CLI: 'claude', MODEL_API_CLI_COMMAND: script('has-an-account.pl', 'HOME') },
        ...{ MODEL_API_LOG_LEVEL: 'debug', MODEL_API_EXPOSE_STDERR: 'true' },
      },
    );
    const { service } = lab;
    const set = async (name: string, { state = 'ok', login = loginWith, mode = 0o700 }: Failing) => {
      await writeFile(join(lab.homeOf(name), 'state'), state);
      await writeFile(join(lab.homeOf(name), '.claude', '.credentials.json'), login(canaryOf(name)));
      await chmod(lab.homeOf(name), mode);
      await service.post('/health/recheck', {}, lab.headers('operator'));
    };
    for (const name of ['ada', 'bob', 'team']) {
      await mkdir(join(lab.homeOf(name), '.claude'));
      await writeFile(join(lab.homeOf(name), 'canary'), canaryOf(name));
      await set(name, {});
    }
    const names = (name: string, { text }: Answer) => text.includes(canaryOf(name)) || text.includes(lab.homeOf(name));
    const leaks: unknown[] = [];
    for (const [name, other] of [
      ['ada', 'bob'],
      ['bob', 'ada'],
    ] as const) {
      const seen: unknown[] = [];
      for (const [how, failing] of Object.entries(failures)) {
        await set(name, failing);
        const answer = await lab.ask(name, 'hello');
        seen.push([how, answer.status === 200 ? answer.body.response : answer.body.reason]);
        const answers = [await lab.ask(other, 'hello'), await lab.ask('carol', 'hello')];
        for (const path of pages)
          for (const person of [other, 'carol']) answers.push(await service.get(path, lab.headers(person)));
        answers.push(await service.get('/health'), await service.get('/metrics'));
        leaks.push(...answers.filter((each) => names(name, each)), ...[answer].filter((each) => names(other, each)));
        await set(name, {});
      }
      expect(seen).toEqual([
        ...['crash', 'dies', 'garbage'].map((how) => [how, 'crashed']),
        ...[
          ['auth', 'auth'],
          ['quota', 'quota'],
        ],
        ...['broken login', 'unfinished login', 'open HOME'].map((how) => [how, 'hello']),
      ]);
    }
    expect(leaks).toEqual([]);
    for (const [name, accountsInLog] of [
      ['ada', ['ada']],
      ['bob', ['bob']],
      ['team', []],
    ] as const) {
      const records = service.logs.filter((record) => JSON.stringify(record).includes(canaryOf(name)));
      expect([...new Set(records.map(({ account }) => account))]).toEqual(accountsInLog);
    }
  }, 120_000);
});

interface Failing {
  /** State of the account for has-an-account.pl. */
  readonly state?: string;
  readonly login?: (canary: string) => string;
  /** Mode of the HOME. */
  readonly mode?: number;
}

const failures: Readonly<Record<string, Failing>> = {
  crash: { state: 'crash' },
  dies: { state: 'dies' },
  garbage: { state: 'garbage' },
  auth: { state: 'auth' },
  quota: { state: `quota ${Math.ceil(Date.now() / 1000) + 3600}` },
  'broken login': { login: (canary) => `${canary} {"claudeAiOauth":` },
  'unfinished login': { login: (canary) => `{"claudeAiOauth":{"accessToken":"${canary}"}}` },
  'open HOME': { mode: 0o755 },
};

const pages = ['/accounts', '/health', '/health/history', '/status', '/jobs', '/usage?group=account'];

function canaryOf(name: string): string {
  return `canary-of-${name}-0123456789`;
}

/** Returns a file with the login of claude, valid for an hour. */
function loginWith(canary: string): string {
  const tokens = { accessToken: canary, refreshToken: canary, expiresAt: Date.now() + 3_600_000 };
  return JSON.stringify({ claudeAiOauth: { ...tokens, scopes: ['user:inference'] } });
}
