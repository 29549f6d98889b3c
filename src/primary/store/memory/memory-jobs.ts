import type { JobListOrder } from '../../../shared/background.js';
import { holderOf } from '../../../shared/client.js';
import type { AcceptedJob, EndedJob, JobPage, JobRecord, JobStore, LoggedText } from '../contract/jobs.js';

/** UTF-16 units of all answers together, and ended jobs: beyond it the oldest of whoever holds most are forgotten, a key with all that it speaks for. */
const maxLength = 128 * 1024 * 1024;
const maxEnded = 10_000;

const noText: LoggedText = { length: 0, blocks: [], read: () => '' };

interface HeldJob {
  /** Counts up with each job. */
  readonly number: number;
  record: JobRecord;
  text: LoggedText;
}

/** Owns what is told of the background jobs of a service whose restart forgets them. */
export class MemoryJobs implements JobStore {
  readonly isDurable = false;
  readonly #byId = new Map<string, HeldJob>();
  #lastNumber = 0;
  /** Those that have ended, in that order. */
  readonly #ended = new Set<HeldJob>();
  #length = 0;

  async accept({ id, form, request, createdAt }: AcceptedJob): Promise<void> {
    const { client, operation, requestId } = request;
    const times = { createdAt, startedAt: null, endedAt: null };
    const record: JobRecord = { id, client, form, operation, requestId, status: 'queued', ...times, end: null };
    this.#byId.set(id, { number: ++this.#lastNumber, record, text: noText });
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
    this.#length += text.length;
    this.#ended.add(job);
    while (this.#length > maxLength || this.#ended.size > maxEnded) this.#forgetOne();
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
    const ended = [...this.#ended];
    const holder = greediestOf(ended, holderOf);
    const ofHolder = ended.filter(({ record }) => holderOf(record.client) === holder);
    const name = greediestOf(ofHolder, (client) => client);
    const oldest = ofHolder.find(({ record }) => record.client === name);
    if (oldest !== undefined) this.#forget(oldest);
  }

  #forget(job: HeldJob): void {
    this.#byId.delete(job.record.id);
    if (this.#ended.delete(job)) this.#length -= job.text.length;
  }
}

/** The name under which most is held. */
function greediestOf(jobs: readonly HeldJob[], nameOf: (client: string) => string): string {
  const lengths = new Map<string, number>();
  for (const { record, text } of jobs) {
    const name = nameOf(record.client);
    lengths.set(name, (lengths.get(name) ?? 0) + text.length + 1);
  }
  const [greediest] = [...lengths].reduce((most, each) => (each[1] > most[1] ? each : most));
  return greediest;
}
