import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { OneShot } from './one-shots.js';
import type { Task, Yield } from './task.js';

/** Load generator in a separate process, so that both sides of a comparison pay for exactly one. */
export class Generator implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;

  static againstRelay(port: number, { answer }: OneShot): Generator {
    return new Generator('relay-generator.js', [String(port), answer]);
  }

  static spawning({ answer, command }: OneShot): Generator {
    return new Generator('spawn-generator.js', [answer, ...command]);
  }

  static getting(port: number, path: string): Generator {
    return new Generator('get-generator.js', [String(port), path]);
  }

  /** Starts a generator that takes turns in conversations of `turns` turns each. */
  static chatting(port: number, turns: number): Generator {
    return new Generator('chat-generator.js', [String(port), String(turns)]);
  }

  private constructor(program: string, args: readonly string[]) {
    this.#process = fork(join(__dirname, program), args);
    this.#exited = once(this.#process, 'exit');
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  /** Runs a task. Rejects if a job of the task gets no answer or a wrong one. */
  async perform(task: Task): Promise<Yield> {
    this.#process.send(task);
    const answered = once(this.#process, 'message').then(([result]) => result as Yield);
    const died = this.#exited.then(() => Promise.reject(new Error('a load generator gave up')));
    return Promise.race([answered, died]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill();
    await this.#exited;
  }
}
