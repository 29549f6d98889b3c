import { orAborted, withResolvers } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import type { JobEnd, JobEvent, JobStart, WaitReason } from '../../shared/job.js';
import type { JobEvents } from './job-stream.js';

/** UTF-16 units of a block: what is read at once is one block, and fits into one message of the channel. */
const blockLength = 16 * 1024;

interface LoggedPiece {
  /** UTF-16 units before it. */
  readonly start: number;
  text: string;
}

/** A text that grows at its end, and that any number of readers read from any position. */
export class AnswerLog {
  readonly #blocks: LoggedPiece[] = [];
  #length = 0;

  /** UTF-16 units. */
  get length(): number {
    return this.#length;
  }

  get blocks(): readonly Readonly<LoggedPiece>[] {
    return this.#blocks;
  }

  add(text: string): void {
    for (let from = 0; from < text.length; ) {
      const end = from + lengthWithoutHalf(text.slice(from, from + blockLength + 1));
      this.#add(text.slice(from, end));
      from = end;
    }
  }

  #add(text: string): void {
    const last = this.#blocks.at(-1);
    if (last !== undefined && last.text.length + text.length <= blockLength) last.text += text;
    else this.#blocks.push({ start: this.#length, text });
    this.#length += text.length;
  }

  /** What is there from that unit on, up to the end of its block; empty at the end. */
  read(from: number): string {
    const block = this.#blocks[this.#indexOf(from)];
    return block === undefined ? '' : block.text.slice(from - block.start);
  }

  /** Of the last block that begins at or before that unit. */
  #indexOf(from: number): number {
    let [low, high] = [0, this.#blocks.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#blocks[middle]?.start ?? 0) <= from) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** Units that fit into one block, without half of a surrogate pair at the end. */
function lengthWithoutHalf(text: string): number {
  if (text.length <= blockLength) return text.length;
  return /[\ud800-\udbff]/.test(text.charAt(blockLength - 1)) ? blockLength - 1 : blockLength;
}

/** How often a reader checks the position of a job that waits. */
const positionMs = 1000;

/** What a reader has got. */
interface LogReader {
  position: number;
  reason: WaitReason | null;
  hasStart: boolean;
  /** Of the text. */
  length: number;
}

/** Where a job stands that waits. */
interface WaitingPlace {
  readonly position: number;
  readonly reason: WaitReason;
}

/** The events of one job from its beginning, for any number of readers, each at its own pace. Nothing is dropped. */
export class EventLog implements JobEvents {
  readonly text = new AnswerLog();
  readonly isFull = false;
  readonly #clock: Clock;
  readonly #place: () => WaitingPlace;
  #start: JobStart | null = null;
  #end: JobEnd | null = null;
  #isSealed = false;
  #isLost = false;
  /** Readers that wait for news. */
  readonly #waiters = new Set<() => void>();

  /** `place` is called while the job waits. */
  constructor(clock: Clock, place: () => WaitingPlace) {
    this.#clock = clock;
    this.#place = place;
  }

  async room(): Promise<void> {}

  /** The end names the model. */
  model(): void {}

  /** The end has all calls. */
  call(): void {}

  /** Nor do its readers get thoughts: the end has those. */
  thought(): void {}

  /** Readers ask for the position themselves. */
  queued(): boolean {
    return false;
  }

  started(queueMs: number): void {
    this.#start = { type: 'job-start', queueMs };
    this.changed();
  }

  write(text: string): void {
    if (this.#isSealed) return;
    this.text.add(text);
    this.changed();
  }

  /** The answer is complete, and its end is about to be stored. */
  seal(): void {
    this.#isSealed = true;
  }

  end(end: JobEnd): void {
    this.#end = end;
    this.changed();
  }

  /** Another host may have the job: readers get no more here. */
  lose(): void {
    this.#isLost = true;
    this.changed();
  }

  /** There is news for the readers. */
  changed(): void {
    for (const resolve of this.#waiters) resolve();
  }

  /** All events until the job has ended or is lost, text in pieces of any size. Rejects with the signal's reason. */
  async *read(signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    const reader: LogReader = { position: 0, reason: null, hasStart: false, length: 0 };
    for (;;) {
      const event = this.#eventFor(reader);
      if (event !== null) yield event;
      if (event?.type === 'job-end' || this.#isLost) return;
      if (event === null) await this.#news(signal);
    }
  }

  get #isWaiting(): boolean {
    return this.#start === null && this.#end === null;
  }

  /** The next one that this reader has not got. */
  #eventFor(reader: LogReader): JobEvent | null {
    if (this.#isLost) return null;
    if (this.#isWaiting) {
      const { position, reason } = this.#place();
      if (position === reader.position && reason === reader.reason) return null;
      reader.position = position;
      reader.reason = reason;
      return { type: 'job-queued', position, reason };
    }
    if (this.#start !== null && !reader.hasStart) {
      reader.hasStart = true;
      return this.#start;
    }
    const text = this.text.read(reader.length);
    reader.length += text.length;
    return text === '' ? this.#end : { type: 'text-delta', text };
  }

  /** Nothing may be awaited between the search for an event and this call, else a change would be missed. */
  async #news(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = withResolvers();
    const stopTimer = this.#isWaiting ? this.#clock.after(positionMs, resolve) : () => {};
    this.#waiters.add(resolve);
    try {
      await orAborted(promise, signal);
    } finally {
      this.#waiters.delete(resolve);
      stopTimer();
    }
  }
}
