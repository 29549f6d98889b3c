import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  idleTicks,
  instanceOfProcess,
  isAlive,
  lastPid,
  listPids,
  maxPid,
  totalForks,
} from '../../../../src/shared/process/proc.js';
import { Children, deadInstance } from '../../../support/processes/children.js';
import { describeWithPidNamespace, inPidNamespace } from '../../../support/processes/pid-namespace.js';

const folderUnderTest = join(__dirname, '..', '..', '..', '..', 'src', 'shared', 'process');

/** Returns the arguments of a program that has loaded the tested module as `proc`. */
function programWith(folder: string, code: string): string[] {
  return [process.execPath, '-e', `const proc = require(${JSON.stringify(join(folder, 'proc.js'))}); ${code}`];
}

async function outputOf(command: readonly string[]): Promise<string> {
  const [program = '', ...args] = command;
  return (await promisify(execFile)(program, args, { encoding: 'utf8' })).stdout;
}

describe('An instance of the primary', () => {
  it('lives as long as its process, and does not match a later process with the same id', async () => {
    await using children = new Children();
    const pid = await children.start({}, '/bin/sleep', '60');
    const instance = await instanceOfProcess(pid);
    expect(instance).toEqual({
      pid,
      startTicks: expect.stringMatching(/^\d+$/),
      pidNamespace: expect.stringMatching(/^\d+$/),
    });
    expect(await isAlive(instance)).toBe(true);
    expect(await isAlive({ ...instance, startTicks: '1' })).toBe(false);
    await children.end(pid);
    expect(await isAlive(instance)).toBe(false);
  });

  it('counts as alive in another pid namespace', async () => {
    expect(await isAlive({ ...(await deadInstance()), pidNamespace: '1' })).toBe(true);
  });

  it('counts as alive if its start time looks different because of its time namespace', async () => {
    const look = `
      const { spawn } = require('node:child_process');
      const child = spawn('unshare', ['--time', '--boottime', '1000', '--fork', '--kill-child', 'sh', '-c',
        'echo $$ $(cut -d" " -f22 /proc/$$/stat); exec sleep 60']);
      child.once('error', () => console.log('skipped')).stderr.once('data', () => console.log('skipped'));
      child.stdout.once('data', async (line) => {
        const [pid, startTicks] = String(line).trim().split(' ');
        const seen = await proc.instanceOfProcess(Number(pid));
        console.log(seen.startTicks !== startTicks, await proc.isAlive({ ...seen, startTicks }));
        child.kill('SIGKILL');
        process.exit();
      });`;
    const said = await outputOf(programWith(folderUnderTest, look));
    if (said === 'skipped\n')
      return void process.stderr.write('Skipped, because no time namespace can be made here.\n');
    expect(said).toBe('true true\n');
  });

  it('counts as alive if too many files are open to check', async () => {
    const look = `
      const { openSync } = require('node:fs');
      proc.instanceOfProcess(process.pid).then(async (instance) => {
        try { for (;;) openSync('/dev/null'); } catch ({ code }) { console.log(code, await proc.isAlive(instance)); }
      });`;
    const limited = ['/bin/sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'];
    expect(await outputOf([...limited, ...programWith(folderUnderTest, look)])).toBe('EMFILE true\n');
  });
});

describe('An instance of the primary whose process cannot be read', () => {
  it('counts as alive if the text of /proc does not show it', async () => {
    const look = `
      const fs = require('node:fs/promises');
      proc.instanceOfProcess(process.pid).then(async (instance) => {
        const { open } = fs;
        for (const path of ['/dev/null', '/proc/self/comm', '/proc/self/statm']) {
          fs.open = () => open(path);
          const unknown = await proc.instanceOfProcess(process.pid);
          console.log(await proc.isAlive({ ...instance, startTicks: '1' }), unknown.startTicks);
        }
        fs.open = open;
        console.log(await proc.isAlive({ ...instance, startTicks: '0' }));
      });`;
    const said = await outputOf(programWith(folderUnderTest, look));
    expect(said).toBe('true 0\ntrue 0\ntrue 0\ntrue\n');
  });
});

describeWithPidNamespace('An instance of the primary in a pid namespace', () => {
  it('counts as alive if /proc hides it because of the mount option hidepid', async () => {
    const script = `
      const { execFileSync } = require('node:child_process');
      const proc = load('src/shared/process/proc');
      const stranger = spawn('/bin/sleep', ['60'], { stdio: 'ignore' });
      await once(stranger, 'spawn');
      const living = await proc.instanceOfProcess(stranger.pid);
      execFileSync('mount', ['-t', 'proc', '-o', 'hidepid=2', 'proc', '/proc']);
      process.setgroups([]); process.setgid(64001); process.setuid(64001);
      say({ isHidden: !(await proc.listPids()).includes(stranger.pid),
        isAlive: [await proc.isAlive(living), await proc.isAlive({ ...living, pid: 30000 })] });`;
    expect(await inPidNamespace(script)).toEqual({ isHidden: true, isAlive: [true, false] });
  });

  it('counts as alive if /proc belongs to another pid namespace, whose ids are of other processes', async () => {
    const look = `
      const { readlinkSync } = require('node:fs');
      const pidNamespace = /\\d+/.exec(readlinkSync('/proc/self/ns/pid'))[0];
      proc.instanceOfProcess(process.pid).then(async (own) => {
        const isAlive = await proc.isAlive({ pid: 4000000, startTicks: '5', pidNamespace });
        console.log(own.startTicks, own.pidNamespace, isAlive, await proc.listPids());
      });`.replaceAll('\\\\', '\\');
    const inside = ['unshare', '--pid', '--fork', '--kill-child', ...programWith(folderUnderTest, look)];
    expect(await outputOf(inside)).toBe('0 0 true null\n');
  });
});

describe('The process figures of the system', () => {
  it('include this process, and the last started one', async () => {
    expect(await listPids()).toContain(process.pid);
    const before = await lastPid();
    await using children = new Children();
    const pid = await children.start({}, '/bin/sleep', '60');
    const [last, max] = [await lastPid(), await maxPid()];
    expect(max).toBeGreaterThan(300);
    expect([before, pid, last].every((number) => Number.isInteger(number) && number > 0 && number <= max)).toBe(true);
  });

  it('count started processes, and the idle time of the processors', async () => {
    const forks = await totalForks();
    await using children = new Children();
    await children.start({}, '/bin/sleep', '60');
    expect(await totalForks()).toBeGreaterThan(forks);
    expect(await idleTicks()).toBeGreaterThanOrEqual(0); // its part for disk waits may decrease
  });
});
