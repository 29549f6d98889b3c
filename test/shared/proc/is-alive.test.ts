import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { instanceOfProcess, isAlive } from '../../../src/shared/proc/proc-fs.js';

const procFs = join(__dirname, '..', '..', '..', 'src', 'shared', 'proc', 'proc-fs.js');

describe('a run of the primary', () => {
  it('lives as long as its process, and not for another one with the same number', async () => {
    const child = spawn('/bin/sleep', ['60'], { stdio: 'ignore' });
    await once(child, 'spawn');
    const instance = await instanceOfProcess(child.pid as number);
    expect(await isAlive(instance)).toBe(true);
    expect(await isAlive({ ...instance, startTicks: '1' })).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await isAlive(instance)).toBe(false);
  });

  it('counts as alive in another pid namespace', async () => {
    expect(await isAlive({ pid: 1, startTicks: '1', pidNamespace: '1' })).toBe(true);
  });

  it('counts as alive for who has too many files open to look', async () => {
    const program = `
      const { openSync } = require('node:fs');
      const { instanceOfProcess, isAlive } = require(${JSON.stringify(procFs)});
      instanceOfProcess(process.pid).then(async (instance) => {
        try { for (;;) openSync('/dev/null'); } catch ({ code }) { console.log(code, await isAlive(instance)); }
      });`;
    const limited = ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, '-e', program];
    expect((await promisify(execFile)('/bin/sh', limited)).stdout).toBe('EMFILE true\n');
  });
});
