import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { features } from '../../../src/features.js';
import type { PrimaryFeature } from '../../../src/primary/features/feature.js';
import { endpoints } from '../../../src/shared/api/endpoints.js';
import { memoryFamily } from '../../../src/shared/config/stores.js';
import { metricPrefix } from '../../../src/shared/metrics.js';
import { type PlayedClaude, startPlayedClaude } from '../../support/agents/played-claude.js';
import type { TemporaryFolder } from '../../support/basics/folder.js';
import { type Service, startService } from '../../support/service/service.js';
import { copyOf, lists, names, removeFeatures, separatingSets, withDependents } from './without.js';

const run = promisify(execFile);
/** A few sets of features that separate each from each other, and all of them: then only the core is left. */
const cases: readonly (readonly [what: string, removed: readonly string[]])[] = [
  ...separatingSets().map((removed) => [removed.join(', '), removed] as const),
  ['all of them', names],
];

/** Returns whether no earlier case is without this feature: what starts programs is tested once for each feature. */
function isFirstWithout(name: string, place: number): boolean {
  return cases.findIndex(([, removed]) => removed.includes(name)) === place;
}

/** Value of MODEL_API_STORE for each kind of stores that the core does not have. */
const placesOfStores: Readonly<Record<string, string>> = {
  sqlite: 'sqlite:/nowhere/store.db',
  redis: 'redis://127.0.0.1:1',
};

/** Returns what chooses the model CLIs of a feature, as in `--cli KIND`. */
function kindsOf({ clis }: PrimaryFeature): string[] {
  return [...(clis?.kinds ?? []), ...(clis?.form === undefined ? [] : ['/x/a.js'])];
}

/** Returns the status of GET without a check of the answer: the description of the API has the features. */
async function statusOf(service: Service, path: string): Promise<number> {
  return (await fetch(`${service.url}${path}`)).status;
}

/** Returns the status and the body of an error, also without a check of the answer. */
async function errorOf(service: Service, method: string, path: string) {
  const response = await fetch(`${service.url}${path}`, { method });
  const { request_id: _, ...body } = (await response.json()) as { readonly request_id?: string };
  return { status: response.status, body };
}

/**
 * Copies what was compiled without these features and their entries in the list. The compiler writes each file from its own source
 * alone (`isolatedModules`), so it would write the same files for such a copy; that it finds no fault in it is tested beside.
 */
async function compiledWithout(removed: readonly string[]): Promise<TemporaryFolder> {
  const folder = await copyOf(['dist/src', 'docs/openapi.yaml', 'package.json']);
  await removeFeatures(folder.path, lists.compiled, removed);
  return folder;
}

it('Each feature runs in some service without each other one that it does not need', () => {
  const pairs = names.flatMap((name) => names.map((other) => [name, other] as const));
  const untested = pairs.filter(
    ([name, other]) =>
      !withDependents(other).includes(name) &&
      !cases.some(([, removed]) => removed.includes(other) && !removed.includes(name)),
  );
  expect(untested).toEqual([]);
});

const numbered = cases.map(([what, removed], place) => [what, removed, place] as const);

/** Returns a value for a variable that the service does not know: without a feature for stores, it refuses all but memory. */
const ignoredValueOf = (name: string) => (name === 'MODEL_API_STORE' ? memoryFamily.kind : 'x');

describe.each([...numbered])('The service without features: %s', (_, removed, place) => {
  const gone = features.filter(({ name }) => removed.includes(name));
  const first = gone.filter(({ name }) => isFirstWithout(name, place));
  const variables = gone.flatMap((feature) => Object.keys(feature.variables));
  const kinds = gone.flatMap(kindsOf);
  let service: Service; // undefined if the copy does not start
  let claude: PlayedClaude | null = null;
  let folder: TemporaryFolder;
  let compiled: string;

  beforeAll(async () => {
    folder = await compiledWithout(removed);
    compiled = join(folder.path, 'dist', 'src');
    const env = {
      MODEL_API_CONSOLE: 'off',
      ...Object.fromEntries(variables.map((name) => [name, ignoredValueOf(name)])),
    };
    const program = join(compiled, 'primary', 'main.js');
    if (kinds.includes('demo')) claude = await startPlayedClaude([], env, { program });
    service = claude?.service ?? (await startService({ env, program }));
  });
  afterAll(async () => {
    await (claude === null ? service?.stop() : claude[Symbol.asyncDispose]());
    await folder[Symbol.asyncDispose]();
  });

  it('answers questions, in a conversation and in the background, too', async () => {
    expect(await service.post('/ask', { prompt: 'Hello' })).toMatchObject({ status: 200, body: { success: true } });
    const { status, body } = await service.post('/chat', { message: 'Hello' });
    expect([status, typeof body.conversation_id]).toEqual([200, 'string']);
    const hasBackground = !removed.includes('background');
    const accepted = await service.post('/ask', { prompt: 'Hello' }, { prefer: 'respond-async' });
    expect([accepted.status, await statusOf(service, '/jobs')]).toEqual(hasBackground ? [202, 200] : [200, 404]);
    if (hasBackground) await service.log('background_job_ended', ({ outcome }) => outcome === 'ok');
  });

  it('takes documents and requests for searches, or refuses them clearly without the feature', async () => {
    const { status, body } = await service.post('/ask', { prompt: 'Hello', files: [{ text: 'Hello' }] });
    const refusal = 'files.0.text: must not be sent: this service takes no documents';
    expect([status, body.message]).toEqual(removed.includes('documents') ? [400, refusal] : [200, undefined]);
    if (removed.includes('anthropic')) return;
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
    const messages = [{ role: 'user', content: 'Hello' }];
    const { status: searched, body: found } = await service.post('/v1/messages', {
      ...{ model: 'default', max_tokens: 10, messages, tools },
    });
    const reason = removed.includes('search') ? 'does not search the web' : 'MODEL_API_SEARCH=off';
    expect([searched, JSON.stringify(found)]).toEqual([400, expect.stringContaining(reason)]);
  });

  it('reports its health and its figures', async () => {
    expect((await service.get('/health')).status).toBe(200);
    const { text } = await service.get('/metrics');
    expect(text).toContain(`${metricPrefix}jobs_active`);
  });

  it('knows none of the paths of an API of the feature, and says so as for any other path', async () => {
    const other = await errorOf(service, 'POST', '/no-such-path');
    const otherOfSdks = await errorOf(service, 'POST', '/v1/no-such-path');
    for (const { method, route } of gone.flatMap((feature) => feature.describeDoor?.().endpoints ?? [])) {
      const error = await errorOf(service, method, route);
      expect([route, error]).toEqual([
        route,
        { status: 404, body: (route.startsWith('/v1/') ? otherOfSdks : other).body },
      ]);
    }
  });

  it('has neither the endpoints nor the fields nor the variables nor the options of keys nor the store of the feature', async () => {
    const described = gone.flatMap((feature) => feature.describeRoutes?.() ?? []);
    for (const { route } of [...gone, ...described].flatMap((each) => each.endpoints)) {
      const isOfCore = endpoints.some((each) => each.route === route); // for another method
      expect([route, await statusOf(service, route)]).toEqual([route, isOfCore ? 405 : 404]);
    }
    for (const field of gone.flatMap((feature) => Object.keys(feature.requestFields))) {
      const { status, body } = await service.post('/ask', { prompt: 'Hello', [field]: 'https://example.org/' });
      expect([status, body.message]).toEqual([400, expect.stringContaining(`${field}: unknown field`)]);
    }
    const command = join(compiled, 'command', 'main.js');
    if (removed.includes('fallbacks')) {
      const { status, body } = await service.post('/ask', { prompt: 'Hello', model: 'echo,eliza' });
      expect([status, body.message]).toEqual([400, 'model: must be one model']);
    }
    if (removed.includes('priority') && !removed.includes('openai')) {
      const asked = { messages: [{ role: 'user', content: 'Hello' }], service_tier: 'priority' };
      const { status, body, headers } = await service.post('/v1/chat/completions', asked, { prefer: 'wait=0' });
      expect([status, body.service_tier]).toEqual([200, undefined]);
      expect(headers.get('x-ignored-parameters')).toBe('service_tier');
    }
    for (const name of first.flatMap((feature) => Object.keys(feature.keyOptions))) {
      const made = run(process.execPath, [command, 'keys', 'new', 'ada', `--${name}`, 'x']);
      await expect(made).rejects.toThrow(`unknown option '--${name}'`);
    }
    const kindsOfStores = first.flatMap(({ store }) => store?.kind ?? []);
    for (const kind of kindsOfStores.filter((each) => each !== memoryFamily.kind)) {
      const env = { ...process.env, MODEL_API_STORE: placesOfStores[kind] };
      const started = run(process.execPath, [join(compiled, 'primary', 'main.js')], { env });
      await expect(started).rejects.toMatchObject({
        code: 78,
        stderr: expect.stringContaining('MODEL_API_STORE: must be memory'),
      });
    }
    for (const kind of first.flatMap((feature) => kindsOf(feature).slice(0, 1))) {
      const made = run(process.execPath, [command, 'serve', '--cli', kind]);
      await expect(made).rejects.toThrow('--cli: must be auto');
    }
    const warnings = service.logs.filter(({ event }) => event === 'config_warning').map(({ warning }) => warning);
    // other variables belong to other programs, too
    for (const name of variables.filter((each) => each.startsWith('MODEL_API_')))
      expect(warnings).toContainEqual(expect.stringMatching(new RegExp(`^${name} is not a variable`)));
  });
});

it('The service without any feature and without claude starts, and reports what is missing', async () => {
  await using folder = await compiledWithout(names);
  const program = join(folder.path, 'dist', 'src', 'primary', 'main.js');
  await using service = await startService({ env: { MODEL_API_CLI: 'auto', PATH: '/nowhere' }, program });
  const missing = 'no claude on PATH: install claude, or set MODEL_API_CLI.';
  await service.log('config_warning', ({ warning }) => warning === missing);
  const { status, body } = await service.post('/ask', { prompt: 'Hello' });
  expect([status, body.message]).toEqual([500, expect.stringContaining('is not installed on this host')]);
});
