import { inLine } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, type StopTimer, yieldToEventLoop } from '../../shared/clock.js';
import { ReadingPace } from './body.js';

/** Maximum of bytes of all bodies that one worker is receiving. */
const maxBytes = 128 * 1024 ** 2;
/** Bytes of each body that are received even if memory is short: Node reads about this much of a connection anyway. */
const freeBytes = 64 * 1024;
/** Silence after which the worker gives up a body. */
const silenceMs = 10_000;
/** Time that a body waits for memory before the client with the most bytes must give up a body. */
const patienceMs = 250;
const checkEveryMs = 250;

/**
 * Owns the count of bytes that this worker has received of incomplete bodies. When memory is short, a body above 64 KiB
 * is read further only if all the rest fits, and otherwise waits, so that at least one body can always complete. Bodies
 * of the clients with the fewest bytes come first.
 */
export class BodyMemory {
  /** Maximum length of one body, bytes. */
  readonly limitBytes: number;
  readonly clock: Clock;
  readonly pace: ReadingPace;
  readonly #inLine = inLine();
  /** Open bodies, oldest first. */
  readonly #open = new Set<ReceivedBody>();
  readonly #owners = new Map<string, BodyOwner>();
  readonly #waiting = new Set<ReceivedBody>();
  /** Bodies that are read while memory is short; room for the rest of each is reserved (`#promised`). */
  readonly #admitted = new Set<ReceivedBody>();
  #bytes = 0;
  #promised = 0;
  #isShort = false;
  #stopChecks: StopTimer = () => {};

  constructor(limitBytes: number, clock: Clock) {
    this.limitBytes = limitBytes;
    this.clock = clock;
    this.pace = new ReadingPace(clock);
  }

  /** Counts a body of this client until `closeBody`. `length`: the declared Content-Length, bytes, or Infinity. */
  open(source: BodySource, length: number, client: ClientText): ReceivedBody {
    const owner = this.#owners.get(client) ?? { name: client, bodies: new Set(), bytes: 0 };
    const most = Math.min(length, this.limitBytes);
    const body = new ReceivedBody(source, owner, most, this.clock, (each, count) => this.#add(each, count));
    if (this.#open.size === 0) this.#stopChecks = this.clock.every(checkEveryMs, () => this.#check());
    this.#owners.set(client, owner);
    owner.bodies.add(body);
    this.#open.add(body);
    return body;
  }

  closeBody(body: ReceivedBody): void {
    if (!this.#open.delete(body)) return;
    this.#dismiss(body);
    this.#waiting.delete(body);
    this.#bytes -= body.bytes;
    body.owner.bytes -= body.bytes;
    body.owner.bodies.delete(body);
    body.freeBytes();
    if (body.owner.bodies.size === 0) this.#owners.delete(body.owner.name);
    if (this.#open.size === 0) this.#stopChecks();
    if (this.#isShort) this.#share();
  }

  /** Resolves in a separate turn of the event loop, so that other requests are served between two large bodies. */
  takeTurn(): Promise<void> {
    return this.#inLine(yieldToEventLoop);
  }

  #add(body: ReceivedBody, count: number): void {
    this.#bytes += count;
    body.owner.bytes += count;
    if (this.#admitted.has(body)) this.#promised -= count;
    else if (this.#isShort) this.#place(body);
    else if (this.#isFull) this.#becomeShort();
  }

  /** Whether memory is short; room for one whole body is always reserved. */
  get #isFull(): boolean {
    return this.#bytes >= Math.max(0, maxBytes - this.limitBytes);
  }

  #becomeShort(): void {
    this.#isShort = true;
    for (const body of this.#open) this.#place(body, false);
    this.#share();
  }

  /** Admits a body above 64 KiB if the rest of it fits; otherwise pauses it. */
  #place(body: ReceivedBody, mayRead = this.#hasRoomFor(body)): void {
    if (body.bytes <= freeBytes || body.remainingBytes === 0) return;
    if (mayRead) return this.#admit(body);
    this.#waiting.add(body);
    body.wait(true);
  }

  #hasRoomFor({ remainingBytes: rest }: ReceivedBody): boolean {
    return this.#admitted.size === 0 || rest <= maxBytes - this.#bytes - this.#promised;
  }

  #admit(body: ReceivedBody): void {
    this.#waiting.delete(body);
    this.#admitted.add(body);
    this.#promised += body.remainingBytes;
    body.wait(false);
  }

  #dismiss(body: ReceivedBody): void {
    if (this.#admitted.delete(body)) this.#promised -= body.remainingBytes;
  }

  /** Resumes the waiting bodies that fit, or all if memory is sufficient again. */
  #share(): void {
    if (!this.#isFull) return this.#relax();
    for (;;) {
      const fitting = [...this.#waiting].filter((body) => this.#hasRoomFor(body));
      const [first, ...others] = fitting;
      if (first === undefined) return;
      this.#admit(others.reduce((least, body) => (claimOf(body) < claimOf(least) ? body : least), first));
    }
  }

  #relax(): void {
    this.#isShort = false;
    this.#admitted.clear();
    this.#promised = 0;
    for (const body of this.#waiting) body.wait(false);
    this.#waiting.clear();
  }

  #check(): void {
    const slow = [...this.#open].filter((body) => body.isSlow());
    for (const body of this.#open) if (body.silentMs >= silenceMs) this.#giveUp(body);
    for (const body of slow.sort((a, b) => b.owner.bytes - a.owner.bytes)) {
      if (this.#waiting.size > 0 && this.#open.has(body)) this.#giveUp(body);
    }
    for (const body of [...this.#waiting].sort((a, b) => claimOf(a) - claimOf(b))) this.#makeRoomFor(body);
  }

  #giveUp(body: ReceivedBody): void {
    this.closeBody(body);
    body.source.giveUp();
  }

  /**
   * Makes room for a body: closes the largest bodies of the client that occupies the most memory, unless the sender of
   * this body would then occupy more itself.
   */
  #makeRoomFor(body: ReceivedBody): void {
    while (this.#waiting.has(body) && body.waitedMs >= patienceMs) {
      const owners = [...this.#owners.values()].filter((owner) => owner !== body.owner);
      const greediest = owners.reduce<BodyOwner | null>(
        (most, each) => (each.bytes > (most?.bytes ?? 0) ? each : most),
        null,
      );
      if (greediest === null || greediest.bytes <= claimOf(body)) return;
      const largest = [...greediest.bodies].reduce((most, each) => (each.bytes > most.bytes ? each : most));
      this.closeBody(largest);
      largest.source.yield();
    }
  }
}

/** Returns the bytes that the client would have with the whole of this body. */
function claimOf({ owner, remainingBytes: rest }: ReceivedBody): number {
  return owner.bytes + rest;
}

/**
 * Pieces below this size are copied into blocks: a Buffer object costs about 100 bytes, and a client may send single
 * bytes.
 */
const ownPieceBytes = 4096;
const blockBytes = 16 * 1024;

/** Minimum of bytes per second; a slower body may be given up. Five checks 250 ms apart span at least one second. */
const slowBytes = 64 * 1024;
const checksOfSpeed = 5;

/** Request that a body is received from. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** Called when the body was silent or slow for too long; the body is already closed. */
  giveUp(): void;
  /**
   * Called when the client has more than its share, and another client needs the memory; the body is already closed.
   */
  yield(): void;
}

/** Client with incomplete bodies, and the bytes received of them. */
export interface BodyOwner {
  readonly name: string;
  readonly bodies: Set<ReceivedBody>;
  bytes: number;
}

/** Owns the received bytes of one body, and measures its speed. */
export class ReceivedBody {
  readonly source: BodySource;
  readonly owner: BodyOwner;
  /** Declared Content-Length, else the limit for bodies, bytes. */
  readonly length: number;
  readonly #clock: Clock;
  readonly #onBytes: (body: ReceivedBody, count: number) => void;
  readonly #pieces: Buffer[] = [];
  #block = Buffer.alloc(0);
  /** Offsets in the block: start of the open piece, and end of the used part. */
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

  /** Bytes that may still arrive. */
  get remainingBytes(): number {
    return Math.max(0, this.length - this.#bytes);
  }

  addBytes(bytes: Buffer): void {
    if (this.#isClosed) return;
    this.#keep(bytes);
    this.#bytes += bytes.length;
    this.#heardMs = this.#clock.monotonicMs();
    this.#onBytes(this, bytes.length);
  }

  /** Returns the whole body as one Buffer. */
  whole(): Buffer {
    this.#closePiece();
    const [first, ...others] = this.#pieces;
    return first !== undefined && others.length === 0 ? first : Buffer.concat(this.#pieces);
  }

  /** Frees the received bytes: a connection may outlive its body by far. Called only by `BodyMemory`. */
  freeBytes(): void {
    this.#isClosed = true;
    this.#pieces.length = 0;
    this.#block = Buffer.alloc(0);
  }

  /** Pauses or resumes the source. Called only by `BodyMemory`. */
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

  /** Milliseconds since the last bytes, or 0 while the body is paused. */
  get silentMs(): number {
    return this.isWaiting ? 0 : this.#clock.monotonicMs() - this.#heardMs;
  }

  /**
   * Whether the last second of reading brought too few bytes. Must be called four times a second: calls are counted
   * instead of time, because nothing is read while the event loop is blocked.
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

  /** Stores a piece. The first is not copied, because usually it is the whole body. */
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
