import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../support/folder.js';
import { fixture, type Service, script, startService, startWithProgram } from '../support/service.js';
import { until } from '../support/until.js';

const system = 'the system text of a client';

/** A service that has a client's system text in its folder, below `TMPDIR`. */
async function startHolding(TMPDIR: string): Promise<{ readonly service: Service; readonly folder: string }> {
  const others = await readdir(TMPDIR);
  const env = { MODEL_API_CLI: 'claude', MODEL_API_DRAIN_TIMEOUT_SECONDS: '0', TMPDIR };
  const service = await startWithProgram(script('takes-system-text.pl'), env);
  service.post('/ask', { prompt: 'hello', system }).catch(() => {}); // broken off by the kill
  const own = (await readdir(TMPDIR)).filter((name) => !others.includes(name));
  const folder = join(TMPDIR, own[0] as string);
  await until(() => holdsText(folder), 'the system text to be on disk');
  return { service, folder };
}

async function holdsText(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => name.endsWith('.system'));
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8').catch(() => '')));
  return texts.some((text) => text.includes(system));
}

/** Who may look into the folder, and at the system texts in it. */
async function modesOf(folder: string): Promise<number[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.system')).map((name) => join(folder, name));
  return Promise.all([folder, ...files].map(async (path) => (await stat(path)).mode & 0o777));
}

describe("A client's system text", () => {
  it('goes with the primary when that is killed, and a living neighbour keeps its own', async () => {
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

  it('goes at the next start when the workers were killed too, and a living neighbour keeps its own', async () => {
    await using shared = await temporaryFolder();
    const neighbour = await startHolding(shared.path);
    await using _running = neighbour.service;
    const { service, folder } = await startHolding(shared.path);
    await using _killed = service;
    for (const pid of [...(await service.workers()), service.pid]) process.kill(pid, 'SIGKILL');
    await service.exited;
    expect(await holdsText(folder)).toBe(true);

    await using successor = await startService({ env: { TMPDIR: shared.path } });
    expect(await readdir(shared.path)).toHaveLength(2);
    expect([await holdsText(folder), await holdsText(neighbour.folder)]).toEqual([false, true]);
    for (const running of [successor, neighbour.service]) await running.stop();
    expect(await readdir(shared.path)).toEqual([]);
  });
});

describe('The folder of a job', () => {
  it('is told to its program by a path that is good there, though TMPDIR is a relative one', async () => {
    await using shared = await temporaryFolder();
    const env = { TMPDIR: '.' };
    await using service = await startWithProgram(fixture('tells-itself.js'), env, { folder: shared.path });
    const { body } = await service.post('/ask', { prompt: 'hello' });
    const told = JSON.parse(body.response as string);
    expect(told.env.TMPDIR).toBe(told.cwd);
  });
});
