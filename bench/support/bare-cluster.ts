import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const program = join(__dirname, '..', '..', '..', 'bench', 'programs', 'bare-express.js');

/** Cluster of plain express workers that answers the given paths with the given bodies. */
export class BareCluster implements AsyncDisposable {
  readonly port: number;
  readonly #process: ChildProcess;

  static async start(workers: number, answers: Readonly<Record<string, unknown>>): Promise<BareCluster> {
    const child = fork(program, [String(workers), JSON.stringify(answers)]);
    const [port] = await once(child, 'message');
    return new BareCluster(child, port as number);
  }

  private constructor(child: ChildProcess, port: number) {
    this.#process = child;
    this.port = port;
  }

  /** Ends the primary of the cluster, and so its workers. */
  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#process, 'exit');
    this.#process.kill();
    await exited;
  }
}
