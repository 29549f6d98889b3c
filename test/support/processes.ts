import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';

/**
 * Returns the living processes with a job cookie of the service with this pid. A zombie counts if one of its threads
 * runs.
 */
export async function jobProcesses(servicePid: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const carries = await Promise.all(pids.map((pid) => hasCookie(pid, `PROMPT_RELAY_JOB=${servicePid}.`)));
  return pids.filter((_, index) => carries[index]);
}

/** Returns the job processes whose command line contains this word. */
export async function programsOf({ pid }: { readonly pid: number }, word: string): Promise<number[]> {
  const pids = await jobProcesses(pid);
  const lines = await Promise.all(pids.map((each) => readFile(`/proc/${each}/cmdline`, 'utf8').catch(() => '')));
  return pids.filter((_, at) => lines[at]?.includes(word));
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
export async function readOfProcess(pid: number | string, file: 'cmdline' | 'environ'): Promise<string> {
  const text = await readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
  if (text !== '') return text;
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const texts = threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/${file}`, 'utf8').catch(() => ''));
  return (await Promise.all(texts)).find((each) => each !== '') ?? '';
}

async function hasCookie(pid: number, cookie: string): Promise<boolean> {
  const environ = await readOfProcess(pid, 'environ');
  return environ.split('\0').some((entry) => entry.startsWith(cookie));
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
