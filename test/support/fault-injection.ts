import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

export const strace = '/usr/bin/strace';
const run = promisify(execFile);

/** From now on these system calls of the process and its threads fail with this error, until the scope ends. */
export async function failing(pid: number, calls: string, error: string): Promise<AsyncDisposable> {
  const filters = ['-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}`];
  const child = spawn(strace, ['-f', '-p', String(pid), '-o', '/dev/null', ...filters], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  let said = '';
  for await (const piece of child.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += piece;
    if (said.includes('attached')) break;
  }
  if (!said.includes('attached')) throw new Error(`strace can not attach: ${said}`);
  child.stderr.resume();
  const stop = async () => {
    child.kill('SIGINT');
    await exited;
  };
  return { [Symbol.asyncDispose]: stop };
}

/** The process can open no file more, until the scope ends. */
export async function withoutDescriptors(pid: number): Promise<AsyncDisposable> {
  const used = new Set((await readdir(`/proc/${pid}/fd`)).map(Number));
  let free = 0;
  while (used.has(free)) free++;
  return limited(pid, 'nofile', 'Max open files', free);
}

/** The user of the process can start no process and no thread more, until the scope ends. Root has no such limit. */
export function withoutProcesses(pid: number, user: number): Promise<AsyncDisposable> {
  return limited(pid, 'nproc', 'Max processes', 1, ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups']);
}

/** `as`: only root with every capability, or its own user, may limit a process. */
async function limited(pid: number, limit: string, name: string, value: number, as: readonly string[] = []) {
  const limits = await readFile(`/proc/${pid}/limits`, 'utf8');
  const before = new RegExp(`^${name}\\s+(\\S+)`, 'm').exec(limits)?.[1];
  if (before === undefined) throw new Error(`the process has no limit ${name}`);
  const set = async (soft: string) => {
    const [program = '', ...args] = [...as, 'prlimit', '--pid', String(pid), `--${limit}=${soft}:`];
    await run(program, args);
  };
  await set(String(value));
  return { [Symbol.asyncDispose]: () => set(before) };
}
