import type { Adapter, Extras, TurnEnd } from '../../../src/primary/cli/contract/adapter.js';
import { plainLaunch, unknownUsage } from '../../../src/primary/cli/contract/adapter.js';
import { ModelClis } from '../../../src/primary/cli/model-clis.js';
import { type AtLeastOne, ModelRouter } from '../../../src/primary/cli/model-router.js';
import type { NamedAdapter } from '../../../src/primary/cli/models.js';
import { GroupContainments } from '../../../src/primary/cli/terminate/group-containment.js';
import { loadConfig } from '../../../src/shared/config/config.js';
import { temporaryFolder } from '../../support/folder.js';
import { LogBook } from '../../support/log-book.js';
import { lineVersion, noSecrets, silentObserver, TextBook, turnOf } from '../../support/scripted-cli.js';
import { clock, temporaryInstance } from '../../support/trees.js';

const never = new AbortController().signal;

const echo: Adapter['command'] = ['sh', '-c', 'while read -r line; do echo "$0"; done'];

/** Answers each line with an end that names the model it was started with. */
function cli(name: string, extras: Extras = {}, command: Adapter['command'] = echo): NamedAdapter {
  const end = (model: string): TurnEnd => ({ type: 'turn-end', text: null, model, usage: unknownUsage });
  const adapter: Adapter = {
    name,
    command,
    credentialVariable: null,
    env: {},
    models: null,
    learn: async () => ({
      ...lineVersion(),
      extras,
      plan: ({ model }) => ({ args: [model ?? 'default'], files: [] }),
      protocol: () => ({
        writer: { write: ({ text }) => ({ text: `${text}\n`, stdin: 'keep-open' }) },
        decoder: { hasBegun: true, read: (chunk) => [end(`${name}-${chunk.trim()}`)], exit: () => [] },
      }),
      listModels: async () => [
        { id: 'big', name: 'Big', default: true },
        { id: 'small', name: 'Small', default: false, capabilities: { images: false, effort: true } },
      ],
    }),
  };
  return { name, adapter };
}

async function create(clis: AtLeastOne<NamedAdapter>, env: Readonly<Record<string, string>> = {}) {
  const folder = await temporaryFolder();
  const instance = await temporaryInstance();
  const config = await loadConfig(env, async () => '');
  const containments = new GroupContainments(instance, null, clock);
  const termination = { containments, killTree: async () => {}, warnings: [], fault: null };
  const folders = { runtimeDirectory: folder.path, workDirectory: folder.path, searchPath: '/usr/bin:/bin' };
  const host = { env, instance, termination, ...folders, clock, log: new LogBook() };
  const all = new ModelClis(config, host, clis, new ModelRouter(config, clis), () => silentObserver, noSecrets);
  const dispose = async () => {
    await all.close();
    await instance[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  };
  return { clis: all, [Symbol.asyncDispose]: dispose };
}

describe('Several CLIs', () => {
  it('get each job by the name of its model, and its answer has that name', async () => {
    await using made = await create([cli('claude'), cli('codex')]);
    for (const [asked, answered] of [
      ['claude', 'claude/claude-default'],
      ['claude/opus', 'claude/claude-opus'],
      ['codex/gpt-5', 'codex/codex-gpt-5'],
    ] as const) {
      const launch = plainLaunch(asked);
      const lease = await made.clis.acquire(launch, null, never);
      const end = await lease.turn({ ...turnOf('hello'), ...launch }, new TextBook(), never);
      await lease.release(null);
      expect(end.model).toBe(answered);
    }
  });

  it('keep the process of a conversation, until it goes on at another one', async () => {
    await using made = await create([cli('claude'), cli('codex')]);
    const { clis } = made;
    const turn = async (model: string, messageCount: number) => {
      const launch = plainLaunch(model);
      const state = { id: 'a', messageCount, launch };
      const lease = await clis.acquire(launch, messageCount === 0 ? null : state, never);
      await lease.turn({ ...turnOf('hello'), ...launch }, new TextBook(), never);
      const after = { ...state, messageCount: messageCount + 2 };
      await lease.release(after);
      return { origin: lease.origin, isKept: clis.keeps(after), before: clis.keeps(state) };
    };
    expect(await turn('codex/gpt-5', 0)).toMatchObject({ origin: 'new', isKept: true });
    expect(await turn('codex/gpt-5', 2)).toMatchObject({ origin: 'live', isKept: true });
    expect(await turn('claude/opus', 4)).toMatchObject({ origin: 'new', isKept: true });
    expect([clis.counts().live, clis.all.map(({ pool }) => pool.counts().live)]).toEqual([1, [1, 0]]);
    clis.forget('a');
    expect(clis.counts().live).toBe(0);
  });

  it('list their models with their names, and one default', async () => {
    const all = [cli('claude'), cli('codex')] as const;
    await using made = await create(all);
    const listed = async () => (await made.clis.catalog(clock)()).models.map(({ id, default: is }) => [id, is]);
    expect(await listed()).toEqual([
      ['claude/big', true],
      ['claude/small', false],
      ['codex/big', false],
      ['codex/small', false],
    ]);
    await using other = await create(all, {
      MODEL_API_DEFAULT_MODEL: 'codex/big',
      MODEL_API_ALLOWED_MODELS: 'codex/big',
    });
    const { models } = await other.clis.catalog(clock)();
    expect(models.map(({ id, default: is }) => [id, is])).toEqual([['codex/big', true]]);
  });

  it('list the default of the CLI that answers by default', async () => {
    await using made = await create([cli('claude'), cli('codex')], { MODEL_API_DEFAULT_MODEL: 'codex' });
    const { models } = await made.clis.catalog(clock)();
    expect(models.map(({ id, default: is }) => [id, is])).toEqual([
      ['claude/big', false],
      ['claude/small', false],
      ['codex/big', true],
      ['codex/small', false],
    ]);
    await using named = await create([cli('claude'), cli('codex')], { MODEL_API_ALLOWED_MODELS: 'codex,opus' });
    const allowed = await named.clis.catalog(clock)();
    expect(allowed.models.map(({ id, default: is }) => [id, is])).toEqual([
      ['claude/opus', false],
      ['codex', true],
    ]);
  });

  it('have names that stand for their models, once they have told of those', async () => {
    const aliases = 'mini=codex/small,codex/big=opus,*=codex';
    await using made = await create([cli('claude'), cli('codex')], { MODEL_API_MODEL_ALIASES: aliases });
    const { clis } = made;
    const targets = async () => {
      const names = ['big', 'other', 'codex/big', 'codex/huge', 'mini'];
      return Promise.all(names.map((name) => clis.target(name)));
    };
    expect(clis.target('big')).toBeInstanceOf(Promise);
    const known = ['big', 'codex', 'codex/big', 'codex/huge', 'codex/small'];
    expect(await targets()).toEqual(known);
    expect(clis.target('big')).toBe('big'); // at once from now on
    expect(await targets()).toEqual(known);
    const catalog = clis.catalog(clock);
    expect((await catalog()).models.map(({ id, alias_of: target }) => [id, target])).toEqual([
      ['claude/big', undefined],
      ['claude/small', undefined],
      ['codex/big', undefined],
      ['codex/small', undefined],
      ['mini', 'codex/small'],
    ]);
    expect(await clis.find('other', catalog)).toBeNull(); // the default of codex has no name in its list
    expect(await clis.find('big', catalog)).toMatchObject({ id: 'big', alias_of: 'claude/big' });
    expect(await clis.find('codex/big', catalog)).toMatchObject({ id: 'codex/big', name: 'Big' });
  });

  it('list what their models take beside text, once the program is known', async () => {
    await using made = await create([cli('claude', { image: () => '' }), cli('codex')]);
    const { models } = await made.clis.catalog(clock)();
    expect(models.map(({ id, capabilities }) => [id, capabilities])).toEqual([
      ['claude/big', { images: true, effort: false }],
      ['claude/small', { images: false, effort: false }],
      ['codex/big', { images: false, effort: false }],
      ['codex/small', { images: false, effort: false }],
    ]);
    await using absent = await create([cli('claude', {}, ['/nowhere'])], { MODEL_API_ALLOWED_MODELS: 'opus' });
    expect((await absent.clis.catalog(clock)()).models).toEqual([{ id: 'opus', name: 'opus', default: true }]);
  });

  it('are told which of the waiting jobs are theirs, as they know them', async () => {
    await using made = await create([cli('claude'), cli('codex')]);
    const { clis } = made;
    const jobs = ['opus', 'codex/gpt-5'].map((model) => ({ launch: plainLaunch(model), conversation: null }));
    const own = clis.all.map((one) => clis.waitingFor(one, jobs).map(({ launch }) => launch.model));
    expect(own).toEqual([['opus'], ['gpt-5']]);
  });
});
