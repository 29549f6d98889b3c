import type { CliLease } from '../cli/pool/lease.js';
import type { ConversationState } from '../cli/process/cli-state.js';
import type { Job } from './job.js';

/** What a job needs of a CLI process. */
export type JobCli = Pick<CliLease, 'turn' | 'usage' | 'release' | 'extras'>;

/** As `ModelCli.acquire`. */
export type AcquireCli = (launch: Job['launch'], of: ConversationState | null, signal: AbortSignal) => Promise<JobCli>;

/** Owns the CLI process of one job: one at a time. */
export class JobProcesses {
  readonly #job: Job;
  readonly #acquire: AcquireCli;
  #current: JobCli | null = null;

  constructor(job: Job, acquire: AcquireCli) {
    this.#job = job;
    this.#acquire = acquire;
  }

  /** The process for the job's turn. */
  async take(): Promise<JobCli> {
    const { launch, continues, signal } = this.#job;
    this.#current = await this.#acquire(launch, continues, signal);
    return this.#current;
  }

  /** A process for one more turn, when the first one has gone. */
  async takeAnother(): Promise<JobCli> {
    await this.release(null);
    this.#current = await this.#acquire(this.#job.launch, null, this.#job.signal);
    return this.#current;
  }

  /** As `CliLease.release`. */
  async release(conversation: ConversationState | null): Promise<void> {
    const cli = this.#current;
    this.#current = null;
    await cli?.release(conversation);
  }
}
