import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Dialect } from '../../../src/primary/cli/adapter.js';
import { CliLauncher } from '../../../src/primary/cli/cli-launcher.js';
import { systemClock as clock } from '../../../src/shared/clock.js';
import { Cancelled } from '../../../src/shared/errors.js';
import { instanceOfProcess } from '../../../src/shared/proc/proc-fs.js';
import { ProcessScanner } from '../../../src/shared/proc/process-scanner.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/folder.js';
import { LogBook } from '../../support/log-book.js';
import { lineDialect, noLimits, silentObserver } from '../../support/scripted-cli.js';

const never = new AbortController().signal;
const launch = { model: null, system: 'Be brief.' };

/** Takes its system text from a file. */
const dialect: Dialect = {
  ...lineDialect(),
  plan: ({ system }, path) => ({ args: [], files: [{ path, text: system ?? '' }] }),
};
const program = { path: '/bin/cat', leading: [], dialect, fingerprint: '' };

describe('a launcher', () => {
  let folder: TemporaryFolder;
  let launcher: CliLauncher;

  beforeEach(async () => {
    folder = await temporaryFolder();
    const instance = await instanceOfProcess(process.pid);
    const tools = { setpriv: null, hasPs: false };
    launcher = new CliLauncher(
      { instance, runtimeDirectory: folder.path, env: {}, limits: noLimits },
      { clock, scanner: new ProcessScanner(clock), tools, log: new LogBook(), observer: silentObserver },
    );
  });
  afterEach(async () => {
    await launcher.close();
    await folder[Symbol.asyncDispose]();
  });

  async function expectNothingLeft(): Promise<void> {
    expect([launcher.size, await readdir(folder.path)]).toEqual([0, []]);
  }

  it('gives a program its folder and its files, for no other user, until it has ended', async () => {
    const cli = await launcher.start(program, launch, never);
    const [own, file] = (await readdir(folder.path)).sort().map((name) => join(folder.path, name)) as [string, string];
    const modes = [own, file].map(async (path) => (await stat(path)).mode & 0o777);
    expect(await Promise.all(modes)).toEqual([0o700, 0o600]);
    expect(await readFile(file, 'utf8')).toBe('Be brief.');
    expect(launcher.size).toBe(1);
    await cli.end('done');
    await expectNothingLeft();
  });

  it('leaves nothing behind of a program that can not be started', async () => {
    const missing = launcher.start({ ...program, path: '/no/such/program' }, launch, never);
    await expect(missing).rejects.toMatchObject({ code: 'spawn_error' });
    await expectNothingLeft();
  });

  it('starts nothing for a caller who has gone', async () => {
    const gone = new Cancelled('the client has gone');
    await expect(launcher.start(program, launch, AbortSignal.abort(gone))).rejects.toBe(gone);
    await expectNothingLeft();
  });

  it('ends what it has started when it closes, and starts nothing from then on', async () => {
    const cli = await launcher.start(program, launch, never);
    await launcher.close();
    expect(await cli.isReady()).toBe(false);
    await cli.end('done'); // its folder goes with the word of its keeper
    await expectNothingLeft();
    await expect(launcher.start(program, launch, never)).rejects.toMatchObject({ code: 'shutting_down' });
    await expect(launcher.consult('/bin/cat', [])).rejects.toMatchObject({ code: 'shutting_down' });
    await expectNothingLeft();
  });
});
