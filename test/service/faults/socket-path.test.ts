import { mkdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { runCommand } from '../../support/clients/command.js';
import { failingService, spawnService, startService } from '../../support/service/service.js';

const config = 78;
const unavailable = 69;

/** Things that may be at the path by mistake, and a check that each is unchanged. */
const things = [
  {
    thing: 'a file',
    put: (path: string) => writeFile(path, 'precious'),
    isWhole: async (path: string) => (await readFile(path, 'utf8')) === 'precious',
  },
  {
    thing: 'a folder',
    put: (path: string) => mkdir(path),
    isWhole: async (path: string) => (await stat(path)).isDirectory(),
  },
  {
    thing: 'a link that leads nowhere',
    put: (path: string) => symlink('nowhere', path),
    isWhole: async (path: string) => (await readlink(path)) === 'nowhere',
  },
] as const;

describe('A file at the path of MODEL_API_SOCKET that is not a socket', () => {
  it.each(things)('is left unchanged, and prevents the start: $thing', async ({ put, isWhole }) => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'relay.sock');
    await put(path);
    const sentence = `MODEL_API_SOCKET: ${path} exists and is not a socket: choose another path`;

    const service = await failingService({ MODEL_API_SOCKET: path });
    expect({ code: service.code, fault: service.stderr[1]?.trim() }).toEqual({ code: config, fault: sentence });
    expect(service.logs).toEqual([expect.objectContaining({ event: 'config_invalid', error: sentence })]);
    const env = { MODEL_API_CLI: 'demo', MODEL_API_SOCKET: path };
    expect(await runCommand(['check'], { env })).toEqual({ code: config, stdout: '', stderr: `fault  ${sentence}\n` });
    expect(await isWhole(path)).toBe(true);
  });
});

describe('A socket folder that is created after the start', () => {
  it('is waited for under systemd', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'late', 'relay.sock');
    await using service = await spawnService({
      env: { MODEL_API_SOCKET: path, NOTIFY_SOCKET: join(folder.path, 'notify') },
    });
    expect(await service.log('listen_failed')).toMatchObject({
      error: expect.stringContaining('its folder must exist'),
    });
    await mkdir(join(folder.path, 'late'));
    await service.log('service_ready');
    expect((await stat(path)).isSocket()).toBe(true);
    expect(service.logs.filter(({ event }) => event === 'listen_failed')).toHaveLength(1);
  });
});

describe('A socket at the path of MODEL_API_SOCKET', () => {
  it('is replaced if a killed service has left it', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'relay.sock');
    const killed = await startService({ env: { MODEL_API_SOCKET: path } });
    const workers = await killed.workers();
    // A killed service leaves the program of its readiness check behind, until the next service starts.
    await until(async () => (await killed.jobProcesses()).length === 0, 'the readiness check to end');
    for (const pid of [...workers, killed.pid]) process.kill(pid, 'SIGKILL');
    await killed.stop();
    const left = await stat(path);
    await using service = await startService({ env: { MODEL_API_SOCKET: path } });
    await until(async () => ((await stat(path)).mode & 0o777) === 0o660, 'a new socket');
    expect((await stat(path)).ctimeMs).toBeGreaterThan(left.ctimeMs);
    expect((await service.get('/version')).status).toBe(200);
  });

  it('that still answers is not replaced', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'relay.sock');
    await using first = await startService({ env: { MODEL_API_SOCKET: path } });
    const { ino } = await stat(path);
    expect(await failingService({ MODEL_API_SOCKET: path })).toMatchObject({ code: unavailable });
    expect((await stat(path)).ino).toBe(ino);
    expect((await first.get('/version')).status).toBe(200);
  });
});
