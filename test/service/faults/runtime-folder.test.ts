import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { mountTinyDisk } from '../../support/basics/tiny-disk.js';
import { until } from '../../support/basics/until.js';
import { fixture, type Service, script, startService, startWithProgram } from '../../support/service/service.js';

const system = 'the system text of a client';

/** Returns the runtime directories, without those in which programs work. */
async function foldersIn(parent: string): Promise<readonly string[]> {
  return (await readdir(parent)).filter((name) => name.startsWith('prompt-relay-'));
}

/** Starts a service that has stored a client's system text in its folder below `TMPDIR`. */
async function startHolding(TMPDIR: string): Promise<{ readonly service: Service; readonly folder: string }> {
  const others = await readdir(TMPDIR);
  const env = { MODEL_API_CLI: 'claude', MODEL_API_DRAIN_TIMEOUT_SECONDS: '0', TMPDIR };
  const service = await startWithProgram(script('takes-system-text.pl'), env);
  service.post('/ask', { prompt: 'hello', system }).catch(() => {}); // the kill breaks the request off
  const [own = ''] = (await foldersIn(TMPDIR)).filter((name) => !others.includes(name));
  const folder = join(TMPDIR, own);
  await until(() => holdsText(folder), 'the system text to be on disk');
  return { service, folder };
}

async function holdsText(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => name.endsWith('.system'));
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8').catch(() => '')));
  return texts.some((text) => text.includes(system));
}

/** Returns the modes of the folder and of the system texts in it. */
async function modesOf(folder: string): Promise<number[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.system')).map((name) => join(folder, name));
  return Promise.all([folder, ...files].map(async (path) => (await stat(path)).mode & 0o777));
}

describe('The system text of a client', () => {
  it('is deleted when its primary is killed, and the files of a running neighbour remain', async () => {
    await using shared = await temporaryFolder();
    const neighbour = await startHolding(shared.path);
    await using _running = neighbour.service;
    expect(await modesOf(neighbour.folder)).toEqual([0o700, 0o600]);
    const { service, folder } = await startHolding(shared.path);
    await using _killed = service;
    service.process.kill('SIGKILL');
    await until(() => !existsSync(folder), 'the folder to be gone');
    expect(await holdsText(neighbour.folder)).toBe(true);
    await neighbour.service.stop();
    expect(await readdir(shared.path)).toEqual([]);
  });

  it('is deleted at the next start when the workers were killed too, and the files of a running neighbour remain', async () => {
    await using shared = await temporaryFolder();
    const neighbour = await startHolding(shared.path);
    await using _running = neighbour.service;
    const { service, folder } = await startHolding(shared.path);
    await using _killed = service;
    for (const pid of [...(await service.workers()), service.pid]) process.kill(pid, 'SIGKILL');
    await service.exited;
    expect(await holdsText(folder)).toBe(true);

    await using successor = await startService({ env: { TMPDIR: shared.path } });
    expect(await foldersIn(shared.path)).toHaveLength(2);
    expect(await readdir(shared.path)).toHaveLength(4);
    expect([await holdsText(folder), await holdsText(neighbour.folder)]).toEqual([false, true]);
    for (const running of [successor, neighbour.service]) await running.stop();
    expect(await readdir(shared.path)).toEqual([]);
  });
});

const key = { 'x-api-key': 'key-of-the-service-0123' };

/** Starts a service with this folder for temporary files. Returns its runtime directory, too. */
async function startIn(TMPDIR: string, cli: Readonly<Record<string, string>>) {
  const env = { ...cli, TMPDIR, MODEL_API_KEY: key['x-api-key'], MODEL_API_READINESS_INTERVAL_SECONDS: '0' };
  const service = await startService({ env });
  await service.log('readiness_checked');
  const [name = ''] = await foldersIn(TMPDIR);
  return { service, own: join(TMPDIR, name) };
}

async function ask(service: Service): Promise<unknown[]> {
  const { status, body } = await service.post('/ask', { prompt: 'hello' }, key);
  return status === 200 ? [status] : [status, body.error];
}

async function recheck(service: Service): Promise<unknown> {
  const { body } = await service.post('/health/recheck', {}, key);
  return (body.readiness as { model_cli: { status: string } }).model_cli.status;
}

describe.each([
  ['a command', { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'cat' }],
  ['the demo model', { MODEL_API_CLI: 'demo' }],
])('A runtime folder removed by a cleaner, with %s', (_what, cli) => {
  let shared: TemporaryFolder;
  let parent: string;
  let service: Service;
  let own: string;
  beforeAll(async () => {
    shared = await temporaryFolder();
    parent = join(shared.path, 'parent');
    await mkdir(parent);
    ({ service, own } = await startIn(parent, cli));
  });
  afterAll(async () => {
    await service.stop();
    expect(await readdir(parent)).toEqual([]);
    await shared[Symbol.asyncDispose]();
  });

  it('is created again for the next job, and the service is ready', async () => {
    await rm(own, { recursive: true });
    expect([await ask(service), await recheck(service)]).toEqual([[200], 'ready']);
    expect((await stat(own)).mode & 0o777).toBe(0o700);
  });

  it('fails jobs with spawn_error while it cannot be created, is reported by a forced check, and needs no restart', async () => {
    await rename(parent, `${parent}.away`);
    expect([await ask(service), await recheck(service)]).toEqual([[500, 'spawn_error'], 'not_ready']);
    expect((await service.get('/health')).body.status).toBe('degraded');
    await rename(`${parent}.away`, parent);
    await rm(own, { recursive: true });
    expect([await recheck(service), await ask(service)]).toEqual(['ready', [200]]);
    expect((await service.get('/health')).body.status).toBe('ok');
  });

  it('is not used if other users may write to it', async () => {
    await rm(own, { recursive: true });
    await mkdir(own);
    await chmod(own, 0o777);
    expect([await ask(service), await recheck(service)]).toEqual([[500, 'spawn_error'], 'not_ready']);
    expect(await readdir(own)).toEqual([]);
    await rm(own, { recursive: true });
    expect([await ask(service), await recheck(service)]).toEqual([[200], 'ready']);
  });
});

(process.getuid?.() === 0 ? describe : describe.skip)('A full disk at the runtime folder', () => {
  it('is reported by a forced check, and the service recovers when there is space', async () => {
    await using disk = await mountTinyDisk();
    const { service } = await startIn(disk.path, { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'cat' });
    await using _running = service;
    await disk.fill();
    expect([await ask(service), await recheck(service)]).toEqual([[500, 'spawn_error'], 'not_ready']);
    await disk.empty();
    expect([await recheck(service), await ask(service)]).toEqual(['ready', [200]]);
  });
});

describe('The folder of a job', () => {
  it('is passed to its program as an absolute path even if TMPDIR is relative', async () => {
    await using shared = await temporaryFolder();
    const env = { TMPDIR: '.' };
    await using service = await startWithProgram(fixture('tells-itself.js'), env, { folder: shared.path });
    const { body } = await service.post('/ask', { prompt: 'hello' });
    const told = JSON.parse(body.response as string);
    for (const path of [told.env.TMPDIR, told.cwd]) expect(path.startsWith(`${shared.path}/`)).toBe(true);
  });
});
