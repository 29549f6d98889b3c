import type { JobListOrder } from '../../../shared/background.js';
import { FairShare, type Sharer } from '../../fairness/fair-share.js';
import type { AcceptedJob, EndedJob, JobPage, JobRecord, JobStore, LoggedText } from '../contract/jobs.js';

/** UTF-16 units of all answers together, and ended jobs. Beyond these the oldest job of the client with most is forgotten. */
const maxLength = 128 * 1024 * 1024;
const maxEnded = 10_000;

const noText: LoggedText = { length: 0, blocks: [], read: () => '' };

interface MemoryJob extends Sharer {
  /** Counts up with each job. */
  readonly number: number;
  record: JobRecord;
  text: LoggedText;
  /** The length of its answer in UTF-16 units, plus one: so a job without text counts, too. */
  bytes: number;
}

/** Owns the records and answers of the background jobs of a service whose restart forgets them. */
export class MemoryJobs implements JobStore {
  readonly isDurable = false;
  readonly #byId = new Map<string, MemoryJob>();
  #lastNumber = 0;
  /** Those that have ended, in that order. */
  readonly #ended = new Set<MemoryJob>();
  readonly #shares = new FairShare<MemoryJob>();

  async accept({ id, form, request, createdAt }: AcceptedJob): Promise<void> {
    const { client, operation, requestId } = request;
    const times = { createdAt, startedAt: null, endedAt: null };
    const record: JobRecord = { id, client, form, operation, requestId, status: 'queued', ...times, end: null };
    this.#byId.set(id, { number: ++this.#lastNumber, client, record, text: noText, bytes: 1 });
  }

  async start(id: string, startedAt: number): Promise<boolean> {
    const job = this.#byId.get(id);
    if (job?.record.status !== 'queued') return false;
    job.record = { ...job.record, status: 'running', startedAt };
    return true;
  }

  async end(id: string, ended: EndedJob, text: LoggedText): Promise<boolean> {
    const job = this.#byId.get(id);
    if (job === undefined || this.#ended.has(job)) return true;
    job.record = { ...job.record, ...ended };
    job.text = text;
    job.bytes = text.length + 1;
    this.#ended.add(job);
    this.#shares.add(job, ended.endedAt);
    while (this.#shares.bytes - this.#ended.size > maxLength || this.#ended.size > maxEnded) this.#forgetOne();
    return true;
  }

  async find(id: string, client: string): Promise<JobRecord | null> {
    const record = this.#byId.get(id)?.record;
    return record?.client === client ? record : null;
  }

  async text(id: string, from: number): Promise<string> {
    return this.#byId.get(id)?.text.read(from) ?? '';
  }

  async list({ client, status, before, limit }: JobListOrder): Promise<JobPage> {
    const found = [...this.#byId.values()]
      .filter(({ record, number }) => record.client === client && number < (before ?? Infinity))
      .filter(({ record }) => status === null || record.status === status)
      .slice(-limit - 1)
      .toReversed();
    const shown = found.slice(0, limit);
    return {
      jobs: shown.map(({ record }) => record),
      next: found.length > limit ? (shown.at(-1)?.number ?? null) : null,
    };
  }

  async remove(id: string): Promise<void> {
    const job = this.#byId.get(id);
    if (job !== undefined) this.#forget(job);
  }

  async expire(before: number): Promise<void> {
    for (const job of this.#ended) {
      if ((job.record.endedAt ?? 0) >= before) return;
      this.#forget(job);
    }
  }

  async *restore(): AsyncGenerator<AcceptedJob> {}

  #forgetOne(): void {
    const oldest = this.#shares.greediest?.oldestOfGreediest;
    if (oldest !== undefined) this.#forget(oldest);
  }

  #forget(job: MemoryJob): void {
    this.#byId.delete(job.record.id);
    this.#ended.delete(job);
    this.#shares.remove(job);
  }
}
