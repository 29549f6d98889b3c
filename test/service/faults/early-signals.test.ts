import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { constants, existsSync, watch } from 'node:fs';
import { type FileHandle, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { ownCgroupFolder } from '../../support/processes/scratch-cgroup.js';
import { failingService, programs, type Service, spawnService } from '../../support/service/service.js';

/** A start that waits for its API keys. */
interface HeldStart extends AsyncDisposable {
  readonly service: Service;
  goOn(): Promise<void>;
}

async function holdStart(): Promise<HeldStart> {
  const folder = await temporaryFolder();
  const pipe = join(folder.path, 'keys');
  await promisify(execFile)('mkfifo', [pipe]);
  const service = await spawnService({ env: { MODEL_API_KEY_FILE: pipe } });
  let keys: FileHandle | undefined;
  const goOn = async () => {
    await keys?.writeFile('a-key-of-the-test\n');
    await keys?.close();
    keys = undefined;
  };
  const end = async () => {
    service.process.kill('SIGKILL');
    await service.stop();
    await keys?.close();
    await folder[Symbol.asyncDispose]();
  };
  try {
    // A pipe without a reader cannot be opened for writing.
    const opened = () => open(pipe, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => null);
    keys = await until(opened, 'the service to read its keys');
  } catch (error) {
    await end();
    throw error;
  }
  return { service, goOn, [Symbol.asyncDispose]: end };
}

/** Starts a service that waits for an adapter; its folders and its cgroup exist already. */
async function startHanging(): Promise<{ readonly service: Service } & AsyncDisposable> {
  const folder = await temporaryFolder();
  const [adapter, begun] = [join(folder.path, 'adapter.mjs'), join(folder.path, 'begun')];
  const code = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(begun)}, ''); await new Promise(() => {});`;
  await writeFile(adapter, code);
  const service = await spawnService({ env: { MODEL_API_CLI: adapter } });
  const end = async () => {
    service.process.kill('SIGKILL');
    await service.stop();
    await folder[Symbol.asyncDispose]();
  };
  await until(() => existsSync(begun), 'the adapter to be loaded');
  return { service, [Symbol.asyncDispose]: end };
}

/** Starts a service that creates its runtime directory in this folder. Resolves as soon as the directory exists. */
async function startUntilMade(folder: string): Promise<Service> {
  const watcher = watch(folder);
  const made = once(watcher, 'change');
  const service = await spawnService({ env: { TMPDIR: folder } });
  await made;
  watcher.close();
  return service;
}

/** Sends a signal twice: two signals of a kind may arrive as one. */
function killTwice({ process }: Service, signal: 'SIGTERM' | 'SIGINT'): void {
  process.kill(signal === 'SIGTERM' ? 'SIGINT' : 'SIGTERM');
  process.kill(signal);
}

/** Returns the cgroups of the service with this pid. */
async function cgroupsOf(pid: number): Promise<string[]> {
  const names = await readdir(ownCgroupFolder() ?? '/nowhere').catch(() => []);
  return names.filter((name) => name.startsWith(`prompt-relay-${pid}.`));
}

describe.each(['SIGTERM', 'SIGINT'] as const)('%s to a starting service', (signal) => {
  it('ends it with 0 before it starts any process, and nothing remains', async () => {
    await using start = await holdStart();
    const { service } = start;
    service.process.kill(signal);
    await start.goOn();
    await once(service.process, 'close'); // after its last line of output
    expect(await service.exited).toBe(0);
    expect(service.logs.map(({ event }) => event).filter((event) => event !== 'orphans_reaped')).toEqual([
      'shutdown_start',
      'shutdown_complete',
    ]);
    expect(service.logs.at(-2)).toMatchObject({ signal, running: 0, queued: 0 });
    expect(await readdir(service.home)).toEqual([]);
  });

  it('ends it with 0 once it has created its runtime folder, which is removed too', async () => {
    await using folder = await temporaryFolder();
    await using service = await startUntilMade(folder.path);
    service.process.kill(signal);
    expect(await service.exited).toBe(0);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('kills it at the second signal if it hangs', async () => {
    await using start = await holdStart();
    const { service } = start;
    killTwice(service, signal);
    await service.exited;
    expect(service.process.signalCode).toMatch(/^SIG(TERM|INT)$/);
  });

  it('leaves nothing at the second signal if it hangs after it has created its folder and cgroup', async () => {
    await using start = await startHanging();
    const { service } = start;
    expect(await readdir(service.home)).toHaveLength(2);
    killTwice(service, signal);
    await service.exited;
    expect(service.process.signalCode).toMatch(/^SIG(TERM|INT)$/);
    expect([await readdir(service.home), await cgroupsOf(service.pid)]).toEqual([[], []]);
  });

  it('leaves nothing if the second signal arrives while its folder and cgroup are being created', async () => {
    await using folder = await temporaryFolder();
    await using service = await startUntilMade(folder.path);
    killTwice(service, signal);
    await service.exited;
    expect([await readdir(folder.path), await cgroupsOf(service.pid)]).toEqual([[], []]);
  });
});

describe('A start that fails late', () => {
  it.each([
    ['for the configuration', 78, { MODEL_API_CLI: join(programs, 'throws-on-signal.js') }],
    ['for an address', 69, { MODEL_API_HOST: '192.0.2.1', MODEL_API_KEY: 'a-key-that-is-long-enough' }],
  ])('leaves nothing: %s', async (_, code, env) => {
    const service = await failingService(env);
    expect([service.code, await cgroupsOf(service.pid)]).toEqual([code, []]);
  });
});
