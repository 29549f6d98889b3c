import type { JobAdmitted, JobEnd, JobEvent, JobStart, WaitReason } from '../../shared/job.js';

/** UTF-16 units of text that may be held before the writer is asked to wait. */
const maxHeldLength = 32 * 1024;
/** UTF-16 units of text in one event: so much fits in one message of the channel. */
const maxDeltaLength = 16 * 1024;

/** Where a job writes its events: a stream with one reader, or a log with many. */
export interface JobEvents {
  /** Whether its writer should wait for its reader. */
  readonly isFull: boolean;
  /** Resolves when it is no longer full. */
  room(): Promise<void>;
  /** Returns whether that is news for the reader. */
  queued(position: number, reason: WaitReason): boolean;
  started(queueMs: number): void;
  write(text: string): void;
  /** The last event. */
  end(end: JobEnd): void;
}

interface Position {
  readonly position: number;
  readonly reason: WaitReason;
}

/**
 * The events of one job, between the job and its reader: the one place where they are held. It is bounded in text, and
 * a position that nobody has taken is replaced by the next one. It has one end.
 */
export class JobStream implements JobEvents, AsyncIterableIterator<JobEvent, undefined> {
  readonly #isStreamed: boolean;
  #admission: JobAdmitted | null = null;
  #position: Position | null = null;
  #start: JobStart | 'taken' | null = null;
  #texts: string[] = [];
  #textLength = 0;
  #lastPosition: Position | null = null;
  #end: JobEnd | 'taken' | null = null;
  #wakeReader: () => void = () => {};
  #wakeWriter: () => void = () => {};

  /** Where it is not streamed, positions are left out and text comes in few large pieces. */
  constructor(isStreamed: boolean) {
    this.#isStreamed = isStreamed;
  }

  get isFull(): boolean {
    return this.#textLength >= maxHeldLength && this.#end === null;
  }

  /** Resolves when it is no longer full. */
  async room(): Promise<void> {
    while (this.isFull) {
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
    }
  }

  /** The first event of a job that was admitted. */
  admitted(admission: Omit<JobAdmitted, 'type'>): void {
    this.#admission = { type: 'job-admitted', ...admission };
    this.#wakeReader();
  }

  /** Returns whether that is news for the reader. */
  queued(position: number, reason: WaitReason): boolean {
    if (!this.#isStreamed || this.#start !== null) return false;
    if (position === this.#lastPosition?.position && reason === this.#lastPosition.reason) return false;
    this.#lastPosition = { position, reason };
    this.#position = this.#lastPosition;
    this.#wakeReader();
    return true;
  }

  started(queueMs: number): void {
    this.#position = null;
    this.#start = { type: 'job-start', queueMs };
    this.#wakeReader();
  }

  write(text: string): void {
    if (this.#end !== null) return;
    this.#texts.push(text);
    this.#textLength += text.length;
    this.#wakeReader();
  }

  /** The last event. */
  end(end: JobEnd): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#wakeReader();
    this.#wakeWriter();
  }

  async next(): Promise<IteratorResult<JobEvent, undefined>> {
    for (;;) {
      const event = this.#take();
      if (event !== null) return { value: event, done: false };
      if (this.#end === 'taken') return { value: undefined, done: true };
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  /** The reader has gone: nothing is held for it any more. */
  return(): Promise<IteratorResult<JobEvent, undefined>> {
    this.#texts = [];
    this.#end = 'taken';
    this.#wakeReader();
    this.#wakeWriter();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(): JobEvent | null {
    return this.#takeAdmission() ?? this.#takePosition() ?? this.#takeStart() ?? this.#takeText() ?? this.#takeEnd();
  }

  #takeAdmission(): JobEvent | null {
    const admission = this.#admission;
    this.#admission = null;
    return admission;
  }

  #takePosition(): JobEvent | null {
    const position = this.#position;
    this.#position = null;
    return position === null ? null : { type: 'job-queued', ...position };
  }

  #takeStart(): JobEvent | null {
    const start = this.#start;
    if (start === null || start === 'taken') return null;
    this.#start = 'taken';
    return start;
  }

  #takeText(): JobEvent | null {
    const isDue = this.#isStreamed || this.#textLength >= maxDeltaLength || this.#end !== null;
    if (this.#texts.length === 0 || !isDue) return null;
    const text = this.#isStreamed && !this.#isBehind ? (this.#texts.shift() ?? '') : this.#texts.splice(0).join('');
    const taken = text.slice(0, lengthWithoutHalf(text));
    if (taken.length < text.length) this.#texts.unshift(text.slice(taken.length));
    this.#textLength -= taken.length;
    if (!this.isFull) this.#wakeWriter();
    return { type: 'text-delta', text: taken };
  }

  /** A reader that is behind gets what is held in few large pieces. */
  get #isBehind(): boolean {
    return this.#textLength > maxDeltaLength;
  }

  #takeEnd(): JobEvent | null {
    const end = this.#end;
    if (end === null || end === 'taken') return null;
    this.#end = 'taken';
    return end;
  }
}

/** Units that fit into one delta, without half of a surrogate pair at the end. */
function lengthWithoutHalf(text: string): number {
  const isCut = text.length > maxDeltaLength && /[\ud800-\udbff]/.test(text.charAt(maxDeltaLength - 1));
  return isCut ? maxDeltaLength - 1 : maxDeltaLength;
}
