import { holderOf } from '../../shared/client.js';
import type { BackgroundJob } from './background-job.js';
import type { Room } from './room.js';

/** The lines of one holder by the names that it speaks for, in order of their turns. None is empty. */
type Lines = Map<string, BackgroundJob[]>;

/**
 * Owns the background jobs that wait: round-robin between the holders of API keys and all other clients, for one holder
 * between the names that it speaks for, and for one name first come first served.
 */
export class WaitingJobs {
  /** By holder, in order of their turns. None is empty. */
  readonly #holders = new Map<string, Lines>();
  #count = 0;
  #bytes = 0;

  get count(): number {
    return this.#count;
  }

  /** Of their texts and images. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What one name has. */
  of(client: string): Room {
    return sumOf([this.#linesOf(client).get(client) ?? []]);
  }

  /** What all names of its holder have. */
  ofHolder(client: string): Room {
    return sumOf(this.#linesOf(client).values());
  }

  add(job: BackgroundJob): void {
    const line = this.#lineOf(job);
    line.push(job);
    this.#enter(job, line);
  }

  /** One that was taken and could not start: it goes before the others of its client. */
  putBack(job: BackgroundJob): void {
    this.#enter(job, [job, ...this.#lineOf(job)]);
  }

  /** The next one for which this is so. Its name's turn, and its holder's, comes again after all others had one. */
  takeNext(mayStart: (job: BackgroundJob) => boolean): BackgroundJob | null {
    for (const [holder, lines] of this.#holders) {
      for (const [client, line] of lines) {
        const job = line.find(mayStart);
        if (job === undefined) continue;
        moveToEnd(lines, client, line);
        moveToEnd(this.#holders, holder, lines);
        this.remove(job);
        return job;
      }
    }
    return null;
  }

  /** Returns whether it was there. */
  remove(job: BackgroundJob): boolean {
    const lines = this.#linesOf(job.client);
    const line = lines.get(job.client) ?? [];
    const index = line.indexOf(job);
    if (index < 0) return false;
    line.splice(index, 1);
    if (line.length === 0) lines.delete(job.client);
    if (lines.size === 0) this.#holders.delete(holderOf(job.client));
    this.#count--;
    this.#bytes -= job.bytes;
    return true;
  }

  /** How many are taken up to and with this one, if nobody else comes; 0 where it does not wait. */
  positionOf(job: BackgroundJob): number {
    const lines = this.#linesOf(job.client);
    const position = this.#lineOf(job).indexOf(job) + 1;
    if (position === 0) return 0;
    const ofHolder = turnOf(job.client, position, lengthsOf(lines));
    const ofHolders = [...this.#holders].map(([holder, each]) => [holder, lengthOf(each)] as const);
    return turnOf(holderOf(job.client), ofHolder, ofHolders);
  }

  #enter(job: BackgroundJob, line: BackgroundJob[]): void {
    const lines = this.#linesOf(job.client);
    lines.set(job.client, line);
    this.#holders.set(holderOf(job.client), lines);
    this.#count++;
    this.#bytes += job.bytes;
  }

  #lineOf({ client }: BackgroundJob): BackgroundJob[] {
    return this.#linesOf(client).get(client) ?? [];
  }

  #linesOf(client: string): Lines {
    return this.#holders.get(holderOf(client)) ?? new Map();
  }
}

function lengthOf(lines: Lines): number {
  return [...lines.values()].reduce((sum, { length }) => sum + length, 0);
}

function lengthsOf(lines: Lines): (readonly [client: string, length: number])[] {
  return [...lines].map(([client, { length }]) => [client, length]);
}

/** How many are taken up to and with the one at this position of its own line, of lines with these lengths. */
function turnOf(own: string, position: number, lengths: readonly (readonly [name: string, length: number])[]): number {
  let turn = position;
  let isBehind = false;
  for (const [name, length] of lengths) {
    if (name === own) isBehind = true;
    else turn += Math.min(length, isBehind ? position - 1 : position);
  }
  return turn;
}

function sumOf(lines: Iterable<readonly BackgroundJob[]>): Room {
  const jobs = [...lines].flat();
  return { jobs: jobs.length, bytes: jobs.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function moveToEnd<V>(map: Map<string, V>, name: string, value: V): void {
  map.delete(name);
  map.set(name, value);
}
