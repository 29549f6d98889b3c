import type { Clock } from '../../shared/clock.js';

/** A shorter piece is copied: an object of its own costs some hundred bytes, and a client may send a byte at a time. */
const ownPieceBytes = 4096;
const blockBytes = 16 * 1024;

/** A body that brings less in a second is slow. Five checks are a second at least, wherever between two of them it begins. */
const slowBytes = 64 * 1024;
const checksOfSpeed = 5;

/** What a body is received from. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** Nothing has come for too long, or too little. The body is counted no more. */
  giveUp(): void;
  /** Its client holds more than its share, and another one needs the memory. The body is counted no more. */
  yield(): void;
}

/** A client with bodies that are not complete, and the bytes that they hold. */
export interface BodyOwner {
  readonly name: string;
  readonly bodies: Set<ReceivedBody>;
  bytes: number;
}

/** Owns what has been received of one body, and how fast it comes. */
export class ReceivedBody {
  readonly source: BodySource;
  readonly owner: BodyOwner;
  /** As the client has announced it, else the longest that it may be. */
  readonly length: number;
  readonly #clock: Clock;
  readonly #onBytes: (body: ReceivedBody, count: number) => void;
  readonly #pieces: Buffer[] = [];
  #block = Buffer.alloc(0);
  /** Of the block: where the piece begins that is open, and where it ends. */
  #open = 0;
  #used = 0;
  #bytes = 0;
  #waitsSinceMs: number | null = null;
  #heardMs: number;
  #checks = 0;
  #bytesBefore = 0;
  #isClosed = false;

  constructor(
    source: BodySource,
    owner: BodyOwner,
    length: number,
    clock: Clock,
    onBytes: (body: ReceivedBody, count: number) => void,
  ) {
    this.source = source;
    this.owner = owner;
    this.length = length;
    this.#clock = clock;
    this.#onBytes = onBytes;
    this.#heardMs = clock.monotonicMs();
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What may still come. */
  get rest(): number {
    return Math.max(0, this.length - this.#bytes);
  }

  add(bytes: Buffer): void {
    if (this.#isClosed) return;
    this.#keep(bytes);
    this.#bytes += bytes.length;
    this.#heardMs = this.#clock.monotonicMs();
    this.#onBytes(this, bytes.length);
  }

  /** All of it, in one piece. */
  whole(): Buffer {
    this.#closePiece();
    const [first, ...others] = this.#pieces;
    return first !== undefined && others.length === 0 ? first : Buffer.concat(this.#pieces);
  }

  /** What has been received is held no longer: a connection may outlive its body by far. Called by `BodyMemory` alone. */
  close(): void {
    this.#isClosed = true;
    this.#pieces.length = 0;
    this.#block = Buffer.alloc(0);
  }

  /** Called by `BodyMemory` alone. */
  wait(isToWait: boolean): void {
    if (isToWait === this.isWaiting) return;
    const nowMs = this.#clock.monotonicMs();
    this.#waitsSinceMs = isToWait ? nowMs : null;
    this.#heardMs = nowMs;
    this.#beginSecond();
    if (isToWait) this.source.pause();
    else this.source.resume();
  }

  get isWaiting(): boolean {
    return this.#waitsSinceMs !== null;
  }

  get waitedMs(): number {
    return this.#waitsSinceMs === null ? 0 : this.#clock.monotonicMs() - this.#waitsSinceMs;
  }

  /** How long nothing has come, although it was read. */
  get silentMs(): number {
    return this.isWaiting ? 0 : this.#clock.monotonicMs() - this.#heardMs;
  }

  /**
   * Whether the last second, in which it was read, has brought too little, whatever came before. To be asked four times a
   * second. The calls are counted instead of the time, because nothing is read while the loop is blocked.
   */
  isSlow(): boolean {
    if (this.isWaiting || ++this.#checks < checksOfSpeed) return false;
    const isSlow = this.#bytes - this.#bytesBefore < slowBytes;
    this.#beginSecond();
    return isSlow;
  }

  #beginSecond(): void {
    this.#checks = 0;
    this.#bytesBefore = this.#bytes;
  }

  /** The first piece is mostly the whole body, and is never copied. */
  #keep(bytes: Buffer): void {
    if (bytes.length >= ownPieceBytes || this.#bytes === 0) {
      this.#closePiece();
      this.#pieces.push(bytes);
      return;
    }
    if (this.#used + bytes.length > this.#block.length) {
      this.#closePiece();
      this.#block = Buffer.allocUnsafeSlow(blockBytes);
      this.#open = 0;
      this.#used = 0;
    }
    this.#used += bytes.copy(this.#block, this.#used);
  }

  #closePiece(): void {
    if (this.#used > this.#open) this.#pieces.push(this.#block.subarray(this.#open, this.#used));
    this.#open = this.#used;
  }
}
