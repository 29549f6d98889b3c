import type { JobEvents } from '../../primary/jobs/job-stream.js';
import { orAborted, withResolvers } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import type { AnswerEvent, JobEnd, JobEvent, JobStart, PlacedOutput, WaitReason } from '../../shared/job.js';
import { wholeLength } from '../../shared/text/well-formed.js';

/** UTF-16 units of a block. A read returns at most one block, which fits into one message of the channel. */
const blockLength = 16 * 1024;

interface LoggedPiece {
  /** UTF-16 units before this block. */
  readonly start: number;
  text: string;
}

/** Text that grows at its end, and that any number of readers read from any position. */
export class AnswerLog {
  readonly #blocks: LoggedPiece[] = [];
  #length = 0;

  /** Length in UTF-16 units. */
  get length(): number {
    return this.#length;
  }

  get blocks(): readonly Readonly<LoggedPiece>[] {
    return this.#blocks;
  }

  addText(text: string): void {
    for (let from = 0; from < text.length; ) {
      const end = from + wholeLength(text.slice(from, from + blockLength + 1), blockLength);
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

  /** Returns the text from this position to the end of its block; empty at the end of the text. */
  readBlock(from: number): string {
    const block = this.#blocks[this.#indexOf(from)];
    return block === undefined ? '' : block.text.slice(from - block.start);
  }

  /** Returns the index of the last block that begins at or before this position. */
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

/** Call, thought or search in the stream. `at`: UTF-16 units of the answer's text before it. */
type LoggedOutput =
  | { readonly at: number; readonly event: Exclude<PlacedOutput['event'], { readonly text: string }> }
  /** Input of a call, or text of a thought, which grows until the next output. */
  | { readonly at: number; readonly type: 'call-delta' | 'thought-delta'; readonly text: AnswerLog };

/** Calls and thoughts of one answer in the order of its stream, with their places in the text. */
class OutputLog {
  readonly #all: LoggedOutput[] = [];

  /** `at`: length of the text so far. */
  addEvent(at: number, event: PlacedOutput['event']): void {
    if (!('text' in event)) return void this.#all.push({ at, event });
    const last = this.#all.at(-1);
    if (last?.at === at && 'type' in last && last.type === event.type) return last.text.addText(event.text);
    const text = new AnswerLog();
    text.addText(event.text);
    this.#all.push({ at, type: event.type, text });
  }

  /** Returns the place of the next output that a reader has not read completely; null if it has read all. */
  nextPlace({ outputs }: LogReader): number | null {
    return this.#all[outputs]?.at ?? null;
  }

  /**
   * Returns the next event for a reader that has read the text up to its place; null if there is none. `textLength`:
   * length of the text so far.
   */
  nextEvent(reader: LogReader, textLength: number): PlacedOutput['event'] | null {
    for (let next = this.#all[reader.outputs]; next?.at === reader.length; next = this.#all[reader.outputs]) {
      const text = 'text' in next ? next.text.readBlock(reader.outputLength) : '';
      if ('text' in next && text !== '') {
        reader.outputLength += text.length;
        return { type: next.type, text };
      }
      const mayGrow = reader.outputs === this.#all.length - 1 && next.at === textLength;
      if ('text' in next && mayGrow) return null;
      reader.outputs++;
      reader.outputLength = 0;
      if ('event' in next) return next.event;
    }
    return null;
  }

  /** Returns all outputs, with text in pieces that fit into one message of the channel. */
  get placed(): readonly PlacedOutput[] {
    return this.#all.flatMap((output): PlacedOutput[] => {
      if ('event' in output) return [output];
      const { at, type } = output;
      return output.text.blocks.map(({ text }) => ({ at, event: { type, text } }));
    });
  }
}

/** Interval at which a reader checks the position of a waiting job. */
const positionMs = 1000;

/** Progress of a reader. */
interface LogReader {
  position: number;
  reason: WaitReason | null;
  hasStart: boolean;
  /** UTF-16 units of text already read. */
  length: number;
  /** Number of calls and thoughts already read, and UTF-16 units read of the next one. */
  outputs: number;
  outputLength: number;
}

/** Queue position of a waiting job, and the reason for its wait. */
interface WaitingPlace {
  readonly position: number;
  readonly reason: WaitReason;
}

/**
 * All events of one job, for any number of readers at different speeds. No event is dropped, and all readers get the
 * text, the calls and the thoughts in the same order. Readers poll the queue position; the end contains the model.
 */
export class EventLog implements JobEvents {
  readonly text = new AnswerLog();
  readonly #output = new OutputLog();
  readonly #clock: Clock;
  readonly #place: () => WaitingPlace;
  #start: JobStart | null = null;
  #end: JobEnd | null = null;
  #isSealed = false;
  #isLost = false;
  /** Wake functions of readers that wait for a new event. */
  readonly #waiters = new Set<() => void>();

  /** `place` is called while the job waits. */
  constructor(clock: Clock, place: () => WaitingPlace) {
    this.#clock = clock;
    this.#place = place;
  }

  writeStart(queueMs: number): void {
    this.#start = { type: 'job-start', queueMs };
    this.changed();
  }

  write(event: AnswerEvent): void {
    if (this.#isSealed) return;
    if (event.type === 'text-delta') this.text.addText(event.text);
    else this.#output.addEvent(this.text.length, event);
    this.changed();
  }

  /** Calls and thoughts, which the store saves with the end of the job. */
  get output(): readonly PlacedOutput[] {
    return this.#output.placed;
  }

  /** Rejects later text: the answer is complete, and its end is about to be stored. */
  seal(): void {
    this.#isSealed = true;
  }

  writeEnd(end: JobEnd): void {
    this.#end = end;
    this.changed();
  }

  /** Ends all readers without an end event, because another host may have taken over the job. */
  lose(): void {
    this.#isLost = true;
    this.changed();
  }

  /** Wakes the readers. */
  changed(): void {
    for (const resolve of this.#waiters) resolve();
  }

  /**
   * Yields all events until the job has ended or is lost; text comes in pieces of any size. Rejects with the reason of
   * the signal.
   */
  async *readEvents(signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    const reader: LogReader = {
      ...{ position: 0, reason: null, hasStart: false },
      ...{ length: 0, outputs: 0, outputLength: 0 },
    };
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

  /** Returns the next event for this reader; null if the reader has got all events. */
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
    return this.#output.nextEvent(reader, this.text.length) ?? this.#textFor(reader) ?? this.#end;
  }

  /** Returns the next piece of text, at most up to the next call or thought. */
  #textFor(reader: LogReader): JobEvent | null {
    const place = this.#output.nextPlace(reader) ?? Number.POSITIVE_INFINITY;
    const text = this.text.readBlock(reader.length).slice(0, Math.max(0, place - reader.length));
    reader.length += text.length;
    return text === '' ? null : { type: 'text-delta', text };
  }

  /**
   * Waits for a new event. No `await` may come between the search for an event and this call, because a change would be
   * missed.
   */
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
