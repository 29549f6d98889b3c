import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { RelayError } from '../../../shared/errors.js';
import { closingFailed } from '../../../shared/node-internals/spawned-children.js';
import { cookieName } from '../../../shared/process/instance.js';
import type { CliObserver } from '../contract/observer.js';
import type { Child, Containment, ExitStatus } from '../terminate/containment.js';

export interface ProgramStart {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  readonly cookie: string;
}

/** Starts the program as the leader of a process group of its own. Rejects with `spawn_error`. */
export async function spawnProgram(start: ProgramStart, inside: Containment, observer: CliObserver): Promise<Child> {
  const [program, args] = inside.enter(start.program, start.args);
  try {
    const env = { [cookieName]: start.cookie, ...start.env }; // first, so that even a part of the environment tells it
    const options = { cwd: start.workingDirectory, env, detached: true, stdio: 'pipe' } as const;
    const child = closingFailed(() => spawn(program, args, options));
    const exited = new Promise<ExitStatus>((resolve) => {
      child.once('exit', (code, signal) => {
        observer.exited(code === 0 ? 'ok' : signal === null ? 'nonzero' : 'signal');
        resolve({ code, signal });
      });
    });
    await new Promise<void>((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    const { workingDirectory } = start;
    return Object.assign(child as ChildProcessWithoutNullStreams & { pid: number }, { exited, workingDirectory });
  } catch (error) {
    observer.exited('spawn_error');
    throw spawnError(start.program, error as NodeJS.ErrnoException);
  }
}

/** Why a program can't be started. Its path is the operator's business and stays out. */
export function spawnError(program: string, error: NodeJS.ErrnoException): RelayError {
  const name = program.split('/').at(-1);
  return new RelayError('spawn_error', `the model CLI ${name} could not be started: ${error.code ?? error.message}`);
}

/** Helpers take the program's place by exec. When that fails, their name stands in front on stderr. */
export function couldNotExecute({ code, stderr }: { readonly code: number | null; readonly stderr: string }): boolean {
  return (code === 126 || code === 127) && /^(setpriv|prompt-relay-sh): /.test(stderr);
}
