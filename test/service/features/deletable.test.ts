import { execFile } from 'node:child_process';
import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { features } from '../../../src/features.js';
import type { PrimaryFeature } from '../../../src/primary/features/feature.js';
import { metricPrefix } from '../../../src/shared/metrics.js';
import { type PlayedClaude, startPlayedClaude } from '../../support/agents/played-claude.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { root } from '../../support/documents/sources.js';
import { type Service, startService } from '../../support/service/service.js';

const run = promisify(execFile);
const settings = ['package.json', 'tsconfig.json', 'tsconfig.service.json'];
const copied = ['src', 'docs/openapi.yaml', 'tools/browser-files.ts', ...settings];
const names = features.map(({ name }) => name);
/** Each feature with those that need it, and if there are several, all of them: then only the core is left. */
const cases: readonly (readonly [what: string, removed: readonly string[]])[] = [
  ...names.map((name) => [name, withDependents(name)] as const),
  ...(names.length > 1 ? [['all of them', names] as const] : []),
];

/** Returns the names of a feature and of all that need it. */
function withDependents(name: string): string[] {
  const dependents = features.filter(({ needs = [] }: PrimaryFeature) => needs.includes(name));
  return [name, ...dependents.flatMap((each) => withDependents(each.name))];
}

/** Value of MODEL_API_STORE for each kind of stores. */
const placesOfStores: Readonly<Record<string, string>> = {
  sqlite: 'sqlite:/nowhere/store.db',
  redis: 'redis://127.0.0.1:1',
};

/** Copies the source code without these features and without their entries in the list, in place of an earlier copy. */
async function copyWithout(folder: string, removed: readonly string[]): Promise<void> {
  for (const path of copied) await cp(join(root, path), join(folder, path), { recursive: true });
  const list = join(folder, 'src', 'features.ts');
  let text = await readFile(list, 'utf8');
  for (const name of removed) {
    // the compiler writes again what an earlier copy did not have, and nothing else
    for (const path of ['src', 'dist/src'])
      await rm(join(folder, path, 'features', name), { recursive: true, force: true });
    const imported = new RegExp(`^import \\{ (\\w+) \\} from './features/${name}/.*\n`, 'm');
    const [line = '', entry = ''] = imported.exec(text) ?? [];
    text = text.replace(line, '').replace(new RegExp(`(?<=\\[[^\\]]*)\\b${entry}\\b,?`), '');
  }
  await writeFile(list, text);
}

/** Compiles the copy. What an earlier one had in common with it is not compiled again. */
async function compile(folder: string): Promise<void> {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['-p', 'tsconfig.service.json', '--incremental', '--tsBuildInfoFile', 'compiled.json'];
  await run(process.execPath, [compiler, ...options], { cwd: folder }).catch((error) => {
    throw new Error(`the copy does not compile:\n${error.stdout}`);
  });
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

/** Two copies: while the service of one is tested, the other is compiled for the next case. */
let folders: readonly [TemporaryFolder, TemporaryFolder];
const builds = new Map<number, Promise<string>>();

async function makeFolder(): Promise<TemporaryFolder> {
  const folder = await temporaryFolder();
  await symlink(join(root, 'node_modules'), join(folder.path, 'node_modules'));
  return folder;
}

async function build(removed: readonly string[], { path }: TemporaryFolder): Promise<string> {
  await copyWithout(path, removed);
  await compile(path);
  return join(path, 'dist', 'src');
}

/** Resolves with the folder of the compiled files of a case. The service of the case before the previous one must have ended. */
function buildOf(place: number): Promise<string> {
  const [, removed = []] = cases[place] ?? [];
  const known = builds.get(place) ?? build(removed, folders[place % 2 === 0 ? 0 : 1]);
  builds.set(place, known);
  known.catch(() => {}); // reported by the case
  return known;
}

beforeAll(async () => {
  folders = [await makeFolder(), await makeFolder()];
});
afterAll(async () => {
  await Promise.allSettled(builds.values());
  for (const folder of folders) await folder[Symbol.asyncDispose]();
});

const numbered = cases.map(([what, removed], place) => [what, removed, place] as const);

describe.each([...numbered])('The service without a feature: %s', (_, removed, place) => {
  const gone = features.filter(({ name }) => removed.includes(name));
  const variables = gone.flatMap((feature) => Object.keys(feature.variables));
  const kinds = gone.flatMap(({ clis }) => [...(clis?.kinds ?? []), ...(clis?.form === undefined ? [] : ['/x/a.js'])]);
  let service: Service; // undefined if the copy does not compile
  let claude: PlayedClaude | null = null;
  let compiled: string;

  beforeAll(async () => {
    compiled = await buildOf(place);
    if (place + 1 < cases.length) void buildOf(place + 1);
    const env = { MODEL_API_CONSOLE: 'off', ...Object.fromEntries(variables.map((name) => [name, 'x'])) };
    const program = join(compiled, 'primary', 'main.js');
    if (kinds.includes('demo')) claude = await startPlayedClaude([], env, { program });
    service = claude?.service ?? (await startService({ env, program }));
  });
  afterAll(async () => {
    await (claude === null ? service?.stop() : claude[Symbol.asyncDispose]());
  });

  it('answers questions, in a conversation and in the background, too', async () => {
    expect(await service.post('/ask', { prompt: 'Hello' })).toMatchObject({ status: 200, body: { success: true } });
    const { status, body } = await service.post('/chat', { message: 'Hello' });
    expect([status, typeof body.conversation_id]).toEqual([200, 'string']);
    const accepted = await service.post('/ask', { prompt: 'Hello' }, { prefer: 'respond-async' });
    expect(accepted.status).toBe(202);
    await service.log('background_job_ended', ({ outcome }) => outcome === 'ok');
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
      expect([route, await statusOf(service, route)]).toEqual([route, 404]);
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
    for (const name of gone.flatMap((feature) => Object.keys(feature.keyOptions))) {
      const made = run(process.execPath, [command, 'keys', 'new', 'ada', `--${name}`, 'x']);
      await expect(made).rejects.toThrow(`unknown option '--${name}'`);
    }
    for (const { kind } of gone.flatMap(({ store = [] }) => store)) {
      const env = { ...process.env, MODEL_API_STORE: placesOfStores[kind] };
      const started = run(process.execPath, [join(compiled, 'primary', 'main.js')], { env });
      await expect(started).rejects.toMatchObject({
        code: 78,
        stderr: expect.stringContaining('MODEL_API_STORE: must be memory'),
      });
    }
    for (const kind of kinds.slice(0, 1)) {
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
  const program = join(await buildOf(cases.length - 1), 'primary', 'main.js');
  await using service = await startService({ env: { MODEL_API_CLI: 'auto', PATH: '/nowhere' }, program });
  const missing = 'no claude on PATH: install claude, or set MODEL_API_CLI.';
  await service.log('config_warning', ({ warning }) => warning === missing);
  const { status, body } = await service.post('/ask', { prompt: 'Hello' });
  expect([status, body.message]).toEqual([500, expect.stringContaining('is not installed on this host')]);
});
