import type { JobListOrder } from '../../../shared/background.js';
import { newId } from '../../conversations/conversation.js';
import type { AcceptedJob, EndedJob, JobPage, JobRecord, JobStore, LoggedText } from '../contract/jobs.js';
import type { SqliteAccess } from './sqlite-access.js';

/** Background jobs in the file. Nothing of them is held here. */
export class SqliteJobs implements JobStore {
  readonly isDurable = true;
  readonly #access: SqliteAccess;
  /** Tells the jobs that this service has started from those that one before it has. */
  readonly #run = newId();

  constructor(access: SqliteAccess) {
    this.#access = access;
  }

  /** Where it is not known whether it was kept, it is removed again: its caller is told that it was not accepted. */
  async accept(job: AcceptedJob): Promise<void> {
    const undo = { order: { type: 'remove-job', id: job.id }, settled: () => this.#access.tidySoon() } as const;
    await this.#access.ask('job', { type: 'accept-job', job }, undo);
  }

  async start(id: string, at: number): Promise<boolean> {
    return (await this.#access.ask('job', { type: 'start-job', id, at, run: this.#run })) === true;
  }

  async end(id: string, ended: EndedJob, { blocks }: LoggedText): Promise<boolean> {
    const texts = blocks.map(({ start, text }) => ({ start, text }));
    await this.#access.ask('job', { type: 'end-job', id, ended, texts });
    this.#access.tidySoon();
    return true;
  }

  async find(id: string, client: string): Promise<JobRecord | null> {
    return (await this.#access.ask('job', { type: 'find-job', id, client })) as JobRecord | null;
  }

  async text(id: string, from: number): Promise<string> {
    return (await this.#access.ask('job', { type: 'job-text', id, from })) as string;
  }

  async list(order: JobListOrder): Promise<JobPage> {
    return (await this.#access.ask('job', { type: 'list-jobs', order })) as JobPage;
  }

  async remove(id: string): Promise<void> {
    await this.#access.ask('job', { type: 'remove-job', id });
    this.#access.tidySoon();
  }

  async expire(before: number): Promise<void> {
    if ((await this.#access.ask('job', { type: 'expire-jobs', before })) === true) this.#access.tidySoon();
  }

  async *restore(at: number): AsyncGenerator<AcceptedJob> {
    await this.#access.read({ type: 'end-lost-jobs', at });
    for (let after = 0; ; ) {
      const { jobs, last } = (await this.#access.read({ type: 'waiting-jobs', after })) as {
        readonly jobs: readonly AcceptedJob[];
        readonly last: number;
      };
      if (jobs.length === 0) return;
      yield* jobs;
      after = last;
    }
  }
}
