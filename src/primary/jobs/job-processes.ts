import { forgetConversation, type ModelCli } from '../cli/model-cli.js';
import type { CliLease } from '../cli/pool/process-pool.js';
import type { CliProcess, ConversationState } from '../cli/process/cli-process.js';
import type { Job } from './job.js';

/** What a job needs of a CLI process. */
export interface JobCli extends Pick<CliLease, 'turn' | 'usage' | 'release' | 'extras' | 'origin' | 'heldMs'> {
  readonly process: Pick<CliProcess, 'startedMs' | 'startupMs'>;
}

/** Owns the CLI process of one job: one at a time. */
export class JobProcesses {
  readonly #job: Job;
  readonly #clis: readonly ModelCli[];
  #current: JobCli | null = null;

  /** `clis`: all of the service. */
  constructor(job: Job, clis: readonly ModelCli[]) {
    this.#job = job;
    this.#clis = clis;
  }

  /** The process for the job's turn. */
  take(): Promise<JobCli> {
    return this.#acquire(this.#job.continues);
  }

  /** A process for one more turn, when the first one has gone. */
  async takeAnother(): Promise<JobCli> {
    await this.release(null);
    return this.#acquire(null);
  }

  /** As `CliLease.release`. A conversation that has gone on at this CLI leaves its process at another one. */
  async release(conversation: ConversationState | null): Promise<void> {
    const cli = this.#current;
    this.#current = null;
    if (cli !== null && conversation !== null) forgetConversation(this.#clis, conversation.id, this.#job.route.cli);
    await cli?.release(conversation);
  }

  async #acquire(of: ConversationState | null): Promise<JobCli> {
    const { route, launch, signal, spans } = this.#job;
    const acquired = route.cli.acquire(launch, of, signal);
    spans?.acquiring(acquired);
    this.#current = await acquired;
    return this.#current;
  }
}
