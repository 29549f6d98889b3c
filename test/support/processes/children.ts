import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cookieName, type Instance, instanceOfProcess } from '../../../src/shared/process/proc.js';
import { readOwner } from '../../../src/shared/process/scanner.js';
import { until } from '../basics/until.js';
import { programs } from '../service/service.js';

/** Owns processes that a test has started, and kills them when its scope ends. */
export class Children implements AsyncDisposable {
  readonly #started: ChildProcess[] = [];

  /** Starts a program with only this environment. Resolves with its process id after exec. */
  async start(env: Readonly<Record<string, string>>, program: string, ...args: readonly string[]): Promise<number> {
    const child = spawn(program, args, { env, stdio: 'ignore' });
    this.#started.push(child);
    await once(child, 'spawn');
    const pid = child.pid as number;
    await until(async () => (await readOwner(pid)).kind !== 'unclear', 'the exec to be over');
    return pid;
  }

  /** Starts a fixture program in a process tree that carries this cookie. */
  startMarked(cookie: string, program: string, ...args: readonly string[]): Promise<number> {
    return this.start({ [cookieName]: cookie }, '/usr/bin/perl', `${programs}/${program}`, ...args);
  }

  async end(pid: number): Promise<void> {
    const child = this.#started.find((candidate) => candidate.pid === pid);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#started.map(({ pid }) => this.end(pid as number)));
  }
}

/** Returns the identity of an instance that has exited. */
export async function deadInstance(): Promise<Instance> {
  await using children = new Children();
  return await instanceOfProcess(await children.start({}, '/bin/sleep', '60')); // read before the process ends
}
