import type { BackgroundJob } from './background-job.js';

/** Owns the background jobs that wait: first come first served for one client, round-robin between clients. */
export class WaitingJobs {
  /** Lines by client, in order of their turns. None is empty. */
  readonly #lines = new Map<string, BackgroundJob[]>();
  #count = 0;
  #bytes = 0;

  get count(): number {
    return this.#count;
  }

  /** Of their texts and images. */
  get bytes(): number {
    return this.#bytes;
  }

  countOf(client: string): number {
    return this.#lines.get(client)?.length ?? 0;
  }

  bytesOf(client: string): number {
    return (this.#lines.get(client) ?? []).reduce((sum, { bytes }) => sum + bytes, 0);
  }

  add(job: BackgroundJob): void {
    const { client } = job;
    const line = this.#lines.get(client) ?? [];
    line.push(job);
    this.#enter(client, line, job);
  }

  /** One that was taken and could not start: it goes before the others of its client. */
  putBack(job: BackgroundJob): void {
    const { client } = job;
    this.#enter(client, [job, ...(this.#lines.get(client) ?? [])], job);
  }

  #enter(client: string, line: BackgroundJob[], { bytes }: BackgroundJob): void {
    this.#lines.set(client, line);
    this.#count++;
    this.#bytes += bytes;
  }

  /** The next one for which this is so. Its client's turn comes again after all others had one. */
  takeNext(mayStart: (job: BackgroundJob) => boolean): BackgroundJob | null {
    for (const [client, line] of this.#lines) {
      const job = line.find(mayStart);
      if (job === undefined) continue;
      this.#lines.delete(client);
      this.#lines.set(client, line);
      this.remove(job);
      return job;
    }
    return null;
  }

  /** Returns whether it was there. */
  remove(job: BackgroundJob): boolean {
    const line = this.#lines.get(job.client) ?? [];
    const index = line.indexOf(job);
    if (index < 0) return false;
    line.splice(index, 1);
    if (line.length === 0) this.#lines.delete(job.client);
    this.#count--;
    this.#bytes -= job.bytes;
    return true;
  }

  /** How many are taken up to and with this one, if nobody else comes; 0 where it does not wait. */
  positionOf(job: BackgroundJob): number {
    const index = this.#lines.get(job.client)?.indexOf(job) ?? -1;
    if (index < 0) return 0;
    let before = 0;
    let isBehind = false;
    for (const [client, { length }] of this.#lines) {
      if (client === job.client) isBehind = true;
      else before += Math.min(length, isBehind ? index : index + 1);
    }
    return before + index + 1;
  }
}
