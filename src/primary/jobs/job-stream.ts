import type {
  CallDelta,
  CallStart,
  JobAdmitted,
  JobEnd,
  JobEvent,
  JobStart,
  PassageCited,
  SearchMade,
  ThoughtDelta,
  ThoughtEnd,
  WaitReason,
} from '../../shared/job.js';
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
  queued?(position: number, reason: WaitReason): boolean;
  started(queueMs: number): void;
  /** Reports the model that answers. */
  model?(name: string): void;
  write(text: string): void;
  call?(event: CallStart | CallDelta): void;
  thought?(event: ThoughtDelta | ThoughtEnd): void;
  search?(event: SearchMade): void;
  cite?(event: PassageCited): void;
  /** Writes the last event. */
  end(end: JobEnd): void;
}

/** A piece of the answer; a string is text. */
type StreamPiece = string | CallStart | CallDelta | ThoughtDelta | ThoughtEnd | SearchMade | PassageCited;
/** Types of pieces that are joined when they are adjacent. */
type DeltaType = 'text-delta' | 'call-delta' | 'thought-delta';

function typeOf(piece: StreamPiece) {
  return typeof piece === 'string' ? 'text-delta' : piece.type;
}

/** Returns the UTF-16 units that a piece needs in the buffer. */
function lengthOf(piece: StreamPiece): number {
  return typeof piece !== 'string' && isWhole(piece) ? JSON.stringify(piece).length : textIn(piece).length;
}

function textIn(piece: StreamPiece): string {
  if (typeof piece === 'string') return piece;
  return piece.type === 'call-delta' || piece.type === 'thought-delta' ? piece.text : '';
}

/** Whether a piece is always sent alone. */
function isWhole(piece: Exclude<StreamPiece, string>): piece is Exclude<typeof piece, CallDelta | ThoughtDelta> {
  return piece.type !== 'call-delta' && piece.type !== 'thought-delta';
}

interface Position {
  readonly position: number;
  readonly reason: WaitReason;
}

/**
 * The only buffer for the events of one job, between the job and its reader. The size of its pieces is limited, and an
 * unread queue position is replaced by the next one. The last event is the only end.
 */
export class JobStream implements JobEvents, AsyncIterableIterator<JobEvent, undefined> {
  readonly #isStreamed: boolean;
  #admission: JobAdmitted | null = null;
  #position: Position | null = null;
  #start: JobStart | 'taken' | null = null;
  #model: string | null = null;
  /** Texts, and for a streamed answer also calls, thoughts and searches, in order. */
  #pieces: StreamPiece[] = [];
  /** UTF-16 units of all pieces. */
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

  /** Reports the model of a streamed answer. The end of another answer names it. */
  model(name: string): void {
    if (this.#end !== null || !this.#isStreamed) return;
    this.#model = name;
    this.#wakeReader();
  }

  write(text: string): void {
    if (this.#end === null) this.#add(text);
  }

  /** Writes part of a call. If the answer is not streamed, this is omitted, because the end contains all calls. */
  call(event: CallStart | CallDelta): void {
    if (this.#end === null && this.#isStreamed) this.#add(event);
  }

  /**
   * Writes part of a thought. If the answer is not streamed, this is omitted, because the end contains all thoughts.
   */
  thought(event: ThoughtDelta | ThoughtEnd): void {
    if (this.#end === null && this.#isStreamed) this.#add(event);
  }

  /** Writes a search. If the answer is not streamed, this is omitted, because the end contains all searches. */
  search(event: SearchMade): void {
    if (this.#end === null && this.#isStreamed) this.#add(event);
  }

  /** Writes a citation. If the answer is not streamed, this is omitted, because the end contains all blocks. */
  cite(event: PassageCited): void {
    if (this.#end === null && this.#isStreamed) this.#add(event);
  }

  end(end: JobEnd): void {
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
    this.#pieces = [];
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
    return before ?? this.#takeText() ?? this.#takeEnd();
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

  #takeText(): JobEvent | null {
    const isDue = this.#isStreamed || this.#length >= maxDeltaLength || this.#end !== null;
    const [first] = this.#pieces;
    if (first === undefined || !isDue) return null;
    if (typeof first !== 'string' && isWhole(first)) {
      this.#pieces.shift();
      this.#release(lengthOf(first));
      return first;
    }
    const type = typeof first === 'string' ? 'text-delta' : first.type;
    return { type, text: this.#taken(type) };
  }

  /** Takes text of this type from the front of the buffer, at most one delta. */
  #taken(type: DeltaType): string {
    const isBehind = !this.#isStreamed || this.#isBehind;
    const other = this.#pieces.findIndex((piece) => typeOf(piece) !== type);
    const count = isBehind ? (other < 0 ? this.#pieces.length : other) : 1;
    const text = this.#pieces.splice(0, count).map(textIn).join('');
    const taken = text.slice(0, wholeLength(text, maxDeltaLength));
    const left = text.slice(taken.length);
    if (left !== '') this.#pieces.unshift(type === 'text-delta' ? left : { type, text: left });
    this.#release(taken.length);
    return taken;
  }

  #release(length: number): void {
    this.#length -= length;
    if (!this.isFull) this.#wakeWriter();
  }

  #add(piece: StreamPiece): void {
    this.#pieces.push(piece);
    this.#length += lengthOf(piece);
    this.#wakeReader();
  }

  /** Whether the reader is slow: a slow reader gets the buffer in few large pieces. */
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
