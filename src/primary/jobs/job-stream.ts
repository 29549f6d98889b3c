import type { AnswerEvent, JobAdmitted, JobEnd, JobEvent, JobStart, WaitReason } from '../../shared/job.js';
import { wholeLength } from '../../shared/text/well-formed.js';

/** Buffered UTF-16 units of text at which the writer must wait. */
const maxHeldLength = 32 * 1024;
/** Maximum UTF-16 units of text in one event, which must fit into one message of the channel. */
const maxDeltaLength = 16 * 1024;

/** Receiver of the events of a job: a stream with one reader, or a log with many, which omits the optional events. */
export interface JobEvents {
  /** Whether the writer should wait for the reader. */
  readonly isFull?: boolean;
  /** Resolves when the buffer has room again. */
  room?(): Promise<void>;
  /** Reports a queue position. Returns whether it is new to the reader. */
  writePosition?(position: number, reason: WaitReason): boolean;
  writeStart(queueMs: number): void;
  /** Reports the model that answers. */
  model?(name: string): void;
  /** Writes the next part of the answer. */
  write(event: AnswerEvent): void;
  /** Writes the last event. */
  writeEnd(end: JobEnd): void;
}

/** Types of parts that are joined when they are adjacent. */
type DeltaType = Extract<AnswerEvent, { readonly text: string }>['type'];

/** Returns the UTF-16 units that a part needs in the buffer. */
function lengthOf(event: AnswerEvent): number {
  return 'text' in event ? event.text.length : JSON.stringify(event).length;
}

interface Position {
  readonly position: number;
  readonly reason: WaitReason;
}

/**
 * The only buffer for the events of one job, between the job and its reader. The size of its parts is limited, and an
 * unread queue position is replaced by the next one. The last event is the only end.
 */
export class JobStream implements JobEvents, AsyncIterableIterator<JobEvent, undefined> {
  readonly #isStreamed: boolean;
  #admission: JobAdmitted | null = null;
  #position: Position | null = null;
  #start: JobStart | 'taken' | null = null;
  #model: string | null = null;
  #parts: AnswerEvent[] = [];
  /** UTF-16 units of all parts. */
  #length = 0;
  #lastPosition: Position | null = null;
  #end: JobEnd | 'taken' | null = null;
  #wakeReader: () => void = () => {};
  #wakeWriter: () => void = () => {};

  /** If the answer is not streamed, queue positions are omitted and the text comes in few large pieces. */
  constructor(isStreamed: boolean) {
    this.#isStreamed = isStreamed;
  }

  get isFull(): boolean {
    return this.#length >= maxHeldLength && this.#end === null;
  }

  async room(): Promise<void> {
    while (this.isFull) {
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
    }
  }

  /** Writes the first event of an admitted job. */
  admitted(admission: Omit<JobAdmitted, 'type'>): void {
    this.#admission = { type: 'job-admitted', ...admission };
    this.#wakeReader();
  }

  writePosition(position: number, reason: WaitReason): boolean {
    if (!this.#isStreamed || this.#start !== null) return false;
    if (position === this.#lastPosition?.position && reason === this.#lastPosition.reason) return false;
    this.#lastPosition = { position, reason };
    this.#position = this.#lastPosition;
    this.#wakeReader();
    return true;
  }

  writeStart(queueMs: number): void {
    this.#position = null;
    this.#start = { type: 'job-start', queueMs };
    this.#wakeReader();
  }

  /** Reports the model of a streamed answer. The end of another answer names it. */
  model(name: string): void {
    if (this.#end !== null || !this.#isStreamed) return;
    this.#model = name;
    this.#wakeReader();
  }

  /** If the answer is not streamed, only text is written, because the end contains all other parts. */
  write(event: AnswerEvent): void {
    if (this.#end !== null || !(this.#isStreamed || event.type === 'text-delta')) return;
    this.#parts.push(event);
    this.#length += lengthOf(event);
    this.#wakeReader();
  }

  writeEnd(end: JobEnd): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#wakeReader();
    this.#wakeWriter();
  }

  async next(): Promise<IteratorResult<JobEvent, undefined>> {
    for (;;) {
      const event = this.#takeEvent();
      if (event !== null) return { value: event, done: false };
      if (this.#end === 'taken') return { value: undefined, done: true };
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  /** Drops the buffer, because the reader has disconnected. */
  return(): Promise<IteratorResult<JobEvent, undefined>> {
    this.#parts = [];
    this.#end = 'taken';
    this.#wakeReader();
    this.#wakeWriter();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #takeEvent(): JobEvent | null {
    const before = this.#takeAdmission() ?? this.#takePosition() ?? this.#takeStart() ?? this.#takeModel();
    return before ?? this.#takePart() ?? this.#takeEnd();
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

  #takeModel(): JobEvent | null {
    const model = this.#model;
    this.#model = null;
    return model === null ? null : { type: 'job-model', model };
  }

  #takePart(): AnswerEvent | null {
    const isDue = this.#isStreamed || this.#length >= maxDeltaLength || this.#end !== null;
    const [first] = this.#parts;
    if (first === undefined || !isDue) return null;
    if ('text' in first) return { type: first.type, text: this.#taken(first.type) };
    this.#parts.shift();
    this.#release(lengthOf(first));
    return first;
  }

  /** Takes text of this type from the front of the buffer, at most one delta. */
  #taken(type: DeltaType): string {
    const isBehind = !this.#isStreamed || this.#isBehind;
    const other = this.#parts.findIndex((part) => part.type !== type);
    const count = isBehind ? (other < 0 ? this.#parts.length : other) : 1;
    const text = this.#parts
      .splice(0, count)
      .map((part) => ('text' in part ? part.text : ''))
      .join('');
    const taken = text.slice(0, wholeLength(text, maxDeltaLength));
    const left = text.slice(taken.length);
    if (left !== '') this.#parts.unshift({ type, text: left });
    this.#release(taken.length);
    return taken;
  }

  #release(length: number): void {
    this.#length -= length;
    if (!this.isFull) this.#wakeWriter();
  }

  /** Whether the reader is slow: a slow reader gets the buffer in few large parts. */
  get #isBehind(): boolean {
    return this.#length > maxDeltaLength;
  }

  #takeEnd(): JobEvent | null {
    const end = this.#end;
    if (end === null || end === 'taken') return null;
    this.#end = 'taken';
    return end;
  }
}
