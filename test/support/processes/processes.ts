import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { until } from '../basics/until.js';

// The kernel answers at once, and tests look at all processes again and again: readFile would take ten times as long.

/** Returns the pids of all processes, zombies included. */
export function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/**
 * Returns the living processes with a job cookie of the service with this pid. A zombie counts if one of its threads
 * runs.
 */
export async function jobProcesses(servicePid: number): Promise<number[]> {
  const cookie = `PROMPT_RELAY_JOB=${servicePid}.`;
  return allPids().filter((pid) =>
    readOfProcess(pid, 'environ')
      .split('\0')
      .some((entry) => entry.startsWith(cookie)),
  );
}

/** Returns the job processes whose command line contains this word. */
export async function programsOf({ pid }: { readonly pid: number }, word: string): Promise<number[]> {
  return (await jobProcesses(pid)).filter((each) => readOfProcess(each, 'cmdline').includes(word));
}

/** Returns the worker pids of the service from the kernel: if keys are configured, /health hides them. */
export async function workersOf(servicePid: number): Promise<number[]> {
  // The service may have ended.
  const children = await readFile(`/proc/${servicePid}/task/${servicePid}/children`, 'utf8').catch(() => '');
  const pids = children.trim().split(' ').map(Number);
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return pids.filter((_, index) => lines[index]?.includes('worker/main.js'));
}

/** Reads a process's file in /proc, from another thread if the main thread has exited. */
export function readOfProcess(pid: number, file: 'cmdline' | 'environ'): string {
  const content = readIfPresent(`/proc/${pid}/${file}`);
  if (content !== '') return content;
  for (const thread of threadsOf(pid)) {
    const text = thread === String(pid) ? '' : readIfPresent(`/proc/${pid}/task/${thread}/${file}`);
    if (text !== '') return text;
  }
  return '';
}

function readIfPresent(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** Kills a process, if it still exists. */
export function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Whether a process runs. Zombies have exited, although their parent has not collected them. */
export function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Returns the resident memory of a process, and its maximum so far. */
export async function memoryOf(pid: number): Promise<{ readonly bytes: number; readonly peakBytes: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
  return { bytes: field('VmRSS'), peakBytes: field('VmHWM') };
}

/** Pauses a process. Resolves when the kernel has stopped all its threads: until then it may accept a connection. */
export async function pause(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  const stateOf = (thread: string) => readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').replace(/.*\) /, '')[0];
  await until(() => threadsOf(pid).every((thread) => stateOf(thread) === 'T'), 'the process to stop');
}
