import { join } from 'node:path';
import { type Adapter, plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';
import { forgetConversation } from '../../../../src/primary/cli/model-cli.js';
import { launchKeyOf } from '../../../../src/primary/cli/process/program.js';
import { echoCli, modelClisOf } from '../../../support/agents/model-clis.js';
import { lineVersion, TextBook, turnOf } from '../../../support/agents/scripted-cli.js';
import { jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

const never = new AbortController().signal;

const adapter: Adapter = {
  name: 'test',
  command: ['env'],
  credentialVariable: 'MODEL_TOKEN',
  env: { MODEL_RETRIES: '4', MODEL_UPDATES: 'off' },
  models: ['a', 'b'],
  learn: async () => lineVersion(),
};

async function create(env: Readonly<Record<string, string>>) {
  const { clis, router, folder, [Symbol.asyncDispose]: dispose } = await modelClisOf([{ name: 'test', adapter }], env);
  return { ...clis[0], models: router.names.choice, folder, [Symbol.asyncDispose]: dispose };
}

describe('A model CLI in the service', () => {
  it('starts programs with the variables of its adapter, the allowed ones and the credential, and nothing else', async () => {
    await using cli = await create({
      HOME: '/home/me',
      MODEL_UPDATES: 'on',
      SECRET: 'x',
      MODEL_API_CLI_ENV: 'MODEL_UPDATES',
      MODEL_CODE_OAUTH_TOKEN: 'token',
    });
    const { path } = await cli.program.findProgram();
    const { stdout } = await cli.pool.consult(path, []);
    const [cookie, ...rest] = stdout.trim().split('\n');
    expect(cookie).toMatch(/^PROMPT_RELAY_JOB=[\d.]+:1$/);
    expect(rest.toSorted()).toEqual([
      'HOME=/home/me',
      'MODEL_RETRIES=4',
      'MODEL_TOKEN=token',
      'MODEL_UPDATES=on',
      'PATH=/usr/local/bin:/usr/bin:/bin',
      `TMPDIR=${join(cli.folder.path, '1')}`,
    ]);
  });

  it('treats the launch of a request without a model as the default launch', async () => {
    await using cli = await create({ MODEL_API_DEFAULT_MODEL: 'b' });
    const program = await cli.program.findProgram();
    cli.history.refresh((launch) => launchKeyOf(program, launch), 0);
    expect(cli.history.records.map(({ launch }) => launch)).toEqual([plainLaunch('b')]);
    expect(cli.models).toMatchObject({ fallback: 'b', allowed: ['a', 'b'], label: 'b' });
  });
});

describe('Several model CLIs', () => {
  const named = [echoCli('claude'), echoCli('codex')] as const;

  it('get each job with their native name of its model, and know its public name', async () => {
    await using made = await modelClisOf(named);
    for (const [asked, answered, publicName] of [
      ['claude', 'claude-default', 'claude/claude-default'],
      ['claude/opus', 'claude-opus', 'claude/claude-opus'],
      ['codex/gpt-5', 'codex-gpt-5', 'codex/codex-gpt-5'],
    ] as const) {
      const { cli, adapterModel } = made.router.route({ model: asked, client: 'key a' });
      const launch = plainLaunch(adapterModel);
      const lease = await cli.acquire(launch, null, never);
      const end = await lease.turn({ ...turnOf('hello'), ...launch }, new TextBook(), never);
      await lease.release(null);
      expect([end.model, cli.publicName(end.model)]).toEqual([answered, publicName]);
    }
  });

  it('retain the process of a conversation until it continues at another CLI', async () => {
    await using made = await modelClisOf(named);
    const { clis, router } = made;
    const live = () => clis.map(({ pool }) => pool.counts().live);
    const turn = async (model: string, messageCount: number) => {
      const { cli, adapterModel } = router.route({ model, client: 'key a' });
      const launch = plainLaunch(adapterModel);
      const state = { id: 'a', messageCount, launch };
      const lease = await cli.acquire(launch, messageCount === 0 ? null : state, never);
      await lease.turn({ ...turnOf('hello'), ...launch }, new TextBook(), never);
      const after = { ...state, messageCount: messageCount + 2 };
      forgetConversation(clis, 'a', cli);
      await lease.release(after);
      return { origin: lease.origin, isKept: cli.pool.hasSessionFor(after) };
    };
    expect(await turn('codex/gpt-5', 0)).toMatchObject({ origin: 'new', isKept: true });
    expect(await turn('codex/gpt-5', 2)).toMatchObject({ origin: 'live', isKept: true });
    expect(await turn('claude/opus', 4)).toMatchObject({ origin: 'new', isKept: true });
    expect(live()).toEqual([1, 0]);
    forgetConversation(clis, 'a');
    expect(live()).toEqual([0, 0]);
  });

  it('are checked separately, and the check names the CLI', async () => {
    await using made = await modelClisOf(named);
    const [, codex] = made.clis;
    expect(await codex?.health.checks.runCheck('forced')).toMatchObject({ cli: 'codex', status: 'ready' });
    expect(made.checks.map(({ cli }) => cli)).toEqual(['codex']);
    expect(made.clis.map(({ health }) => health.checks.current.status)).toEqual(['unknown', 'ready']);
  });

  it('have separate circuits: jobs without a model use the circuit of the default model at its CLI', async () => {
    await using made = await modelClisOf(named, { MODEL_API_DEFAULT_MODEL: 'codex/gpt' });
    const request = jobRequest();
    const route = made.router.route(request);
    const quota = { scope: 'model', resetsAt: null } as const;
    const failure = { code: 'cli_error', message: 'used up', reason: 'quota', quota } as const;
    route.cli.health.circuits.recordAdmission({ request, route });
    route.cli.health.recordJobEnd({ request, route }, jobFailed('cli_error', { failure }), true);
    expect(made.clis.map(({ health }) => health.circuits.isClosed)).toEqual([true, false]);
  });
});
