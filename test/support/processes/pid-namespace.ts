import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const modules = join(__dirname, '..', '..', '..');
const unshare = ['--pid', '--fork', '--mount-proc', '--kill-child'];

function canUnshare(): boolean {
  try {
    execFileSync('unshare', [...unshare, 'sh', '-c', 'echo 100 >/proc/sys/kernel/ns_last_pid'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns `describe` for tests in a new pid namespace, in which a process can get the id of another; skips them if
 * unavailable.
 */
export function describeWithPidNamespace(title: string, body: () => void): void {
  const isPossible = canUnshare();
  if (!isPossible) process.stderr.write(`Skipped, because no pid namespace can be made here: ${title}.\n`);
  (isPossible ? describe : describe.skip)(title, body);
}

/** Beginning of each script. `takePid(pid)` starts an unrelated process with this id, as a group leader. */
const preamble = `
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { readFileSync, writeFileSync } = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const load = (path) => require(process.env.MODULES + '/' + path + '.js');
const stateOf = (pid) => /\\) (\\S)/.exec(readFileSync('/proc/' + pid + '/stat', 'latin1'))[1];
function takePid(pid, env = {}) {
  writeFileSync('/proc/sys/kernel/ns_last_pid', String(pid - 1));
  const stranger = spawn('/bin/sleep', ['60'], { detached: true, stdio: 'ignore', env });
  if (stranger.pid !== pid) throw new Error('the stranger got ' + stranger.pid + ' instead of ' + pid);
  return stranger;
}
const isAlive = (child) => child.exitCode === null && child.signalCode === null;
const say = (value) => process.stdout.write(JSON.stringify(value) + '\\n', () => process.exit(0));
`;

/** Runs a script in a new pid namespace, and returns its output parsed as JSON. */
export async function inPidNamespace(script: string, env: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const words = [...unshare, process.execPath, '-e', `${preamble}(async () => {${script}})();`];
  const { stdout } = await promisify(execFile)('unshare', words, {
    env: { PATH: process.env.PATH, MODULES: modules, ...env },
    timeout: 20_000,
  });
  return JSON.parse(stdout);
}
