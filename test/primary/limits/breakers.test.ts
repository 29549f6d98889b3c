import type { Adapter } from '../../../src/primary/cli/contract/adapter.js';
import { type AtLeastOne, ModelRouter, type ModelsOf } from '../../../src/primary/cli/model-router.js';
import type { NamedAdapter } from '../../../src/primary/cli/models.js';
import { Breakers } from '../../../src/primary/limits/breakers.js';
import { SeenClients } from '../../../src/primary/limits/seen-clients.js';
import { loadConfig } from '../../../src/shared/config/config.js';
import { FakeClock } from '../../support/fake-clock.js';
import { jobFailed, jobRequest } from '../../support/job-records.js';

const adapter = { models: null } as unknown as Adapter;

async function breakersOf(names: AtLeastOne<string>, modelsOf?: ModelsOf, env = {}) {
  const [first, ...others] = names;
  const clis: AtLeastOne<NamedAdapter> = [{ name: first, adapter }, ...others.map((name) => ({ name, adapter }))];
  const router = new ModelRouter(await loadConfig(env, async () => ''), clis, modelsOf);
  return new Breakers(clis, router, new FakeClock(), new SeenClients());
}

const quota = { scope: 'account', resetsAt: null } as const;
const usedUp = jobFailed('cli_error', { failure: { code: 'cli_error', message: 'used up', reason: 'quota', quota } });

describe('The breakers of several CLIs', () => {
  it('hold back the jobs of the CLI whose account has nothing left, and no others', async () => {
    const breakers = await breakersOf(['claude', 'codex']);
    const [codex, other] = [jobRequest({ model: 'codex/gpt-5' }), jobRequest({ model: 'opus' })];
    breakers.admitted(codex);
    expect(breakers.ended(codex, usedUp, true).outcome).toBe('cli_error');
    expect([breakers.refusal(codex)?.reason, breakers.refusal(other)]).toEqual(['quota', null]);
    expect(breakers.status.map(({ state, model }) => [state, model])).toEqual([
      ['closed', null],
      ['open', 'codex'],
    ]);
    breakers.stop();
  });

  it('tell the end of a job to the one that let it through, whatever its key may name by then', async () => {
    let models = ['codex/gpt'];
    const breakers = await breakersOf(['claude', 'codex'], () => models);
    const [first, probe, next] = [jobRequest(), jobRequest(), jobRequest({ model: 'codex/gpt' })];
    breakers.admitted(first);
    breakers.ended(first, usedUp, true);
    breakers.all[1]?.tryAgain();
    expect(breakers.refusal(probe)).toBeNull();
    breakers.admitted(probe);
    expect(breakers.refusal(next)?.reason).toBe('quota');
    models = ['claude/opus'];
    breakers.ended(probe, jobFailed('cancelled'), true);
    expect(breakers.refusal(next)).toBeNull();
    breakers.stop();
  });

  it('tell whether a job that names no model is held, for its model alone too', async () => {
    const breakers = await breakersOf(['claude', 'codex'], undefined, { MODEL_API_DEFAULT_MODEL: 'codex/gpt' });
    const request = jobRequest();
    const failure = { code: 'cli_error', message: 'used up', reason: 'quota' } as const;
    breakers.admitted(request);
    const quota = { scope: 'model', resetsAt: null } as const;
    breakers.ended(request, jobFailed('cli_error', { failure: { ...failure, quota } }), true);
    expect(breakers.all.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    breakers.stop();
  });

  it('say what is open for all jobs of a CLI, or for those that name no model, and until when', async () => {
    const breakers = await breakersOf(['claude', 'codex'], undefined, { MODEL_API_DEFAULT_MODEL: 'claude/opus' });
    const failure = { code: 'cli_error', message: 'used up', reason: 'quota' } as const;
    const hold = (model: string, scope: 'account' | 'model') => {
      const request = jobRequest({ model });
      breakers.admitted(request);
      const quota = { scope, resetsAt: null };
      breakers.ended(request, jobFailed('cli_error', { failure: { ...failure, quota } }), true);
    };
    hold('claude/haiku', 'model');
    expect(breakers.openFor(0)).toEqual([]);
    hold('claude/opus', 'model');
    hold('codex/gpt', 'account');
    const until = Date.UTC(2026, 0, 1) + 30_000;
    expect([0, 1].map((index) => breakers.openFor(index))).toEqual([
      [{ model: 'claude/opus', reason: 'quota', until }],
      [{ model: null, reason: 'quota', until }],
    ]);
    breakers.all[1]?.tryAgain();
    expect(breakers.openFor(1)).toEqual([]);
    breakers.stop();
  });

  it.each([
    [{ MODEL_API_DEFAULT_MODEL: 'opus' }, null, 'opus'],
    [{ MODEL_API_DEFAULT_MODEL: 'opus' }, 'opus', 'opus'],
    [{}, null, 'default'],
    [{}, 'opus', null],
  ])('with one CLI and %j, tell of the circuit of the model %s as that of %s', async (env, model, name) => {
    const breakers = await breakersOf(['claude'], undefined, env);
    const request = jobRequest({ model });
    const failure = { code: 'cli_error', message: 'used up', reason: 'quota' } as const;
    breakers.admitted(request);
    const quota = { scope: 'model', resetsAt: null } as const;
    breakers.ended(request, jobFailed('cli_error', { failure: { ...failure, quota } }), true);
    expect(breakers.openFor(0).map((open) => open.model)).toEqual(name === null ? [] : [name]);
    breakers.stop();
  });

  it('try again at once when a second client comes, since the first one may have caused all that is held', async () => {
    const breakers = await breakersOf(['claude', 'codex']);
    const refused = jobFailed('cli_error', { failure: { code: 'cli_error', message: '', reason: 'auth' } });
    const ask = (client: string) => {
      const request = jobRequest({ client });
      const refusal = breakers.refusal(request);
      if (refusal === null) breakers.admitted(request);
      return [request, refusal?.reason] as const;
    };
    for (let n = 0; n < 2; n++) breakers.ended(ask('first')[0], refused, true);
    expect(ask('first')[1]).toBe('auth');
    expect(ask('second')[1]).toBeUndefined();
    expect(breakers.all[0].isClosed).toBe(false);
    breakers.stop();
  });

  it('are those of its account where there is but one', async () => {
    const breakers = await breakersOf(['claude']);
    const request = jobRequest({ model: 'opus' });
    breakers.admitted(request);
    breakers.ended(request, usedUp, true);
    expect(breakers.status.map(({ state, model }) => [state, model])).toEqual([['open', null]]);
    breakers.stop();
  });
});
