import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { constants, watch } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/folder.js';
import { type Service, spawnService } from '../support/service.js';
import { until } from '../support/until.js';

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
    // Without a reader it can't be opened.
    const opened = () => open(pipe, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => null);
    keys = await until(opened, 'the service to read its keys');
  } catch (error) {
    await end();
    throw error;
  }
  return { service, goOn, [Symbol.asyncDispose]: end };
}

describe.each(['SIGTERM', 'SIGINT'] as const)('%s at a service that starts', (signal) => {
  it('ends it with 0 before anything is started, and nothing is left', async () => {
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

  it('ends it with 0 as soon as it has a folder of its own, and that goes too', async () => {
    await using folder = await temporaryFolder();
    const watcher = watch(folder.path);
    const made = once(watcher, 'change');
    await using service = await spawnService({ env: { TMPDIR: folder.path } });
    await made;
    watcher.close();
    service.process.kill(signal);
    expect(await service.exited).toBe(0);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('ends it at the second time where it hangs', async () => {
    await using start = await holdStart();
    const { service } = start;
    service.process.kill(signal === 'SIGTERM' ? 'SIGINT' : 'SIGTERM'); // two of a kind may arrive as one
    service.process.kill(signal);
    await service.exited;
    expect(service.process.signalCode).toMatch(/^SIG(TERM|INT)$/);
  });
});
