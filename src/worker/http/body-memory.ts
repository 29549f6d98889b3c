import { inLine } from '../../shared/async.js';
import { type Clock, endOfLoopTurn, type StopTimer } from '../../shared/clock.js';
import { ReadingPace } from './body.js';

/** All bodies that one worker is receiving, bytes. */
const maxBytes = 128 * 1024 ** 2;
/** What is received of each body without waiting: Node reads as much of each connection anyway. */
const freeBytes = 64 * 1024;
/** A body of which nothing comes for so long is given up. */
const silenceMs = 10_000;
/** A body waits so long for others to end before it takes the memory of a client that holds more. */
const patienceMs = 250;
const checkEveryMs = 250;

/**
 * Owns the count of bytes that this worker has received of incomplete bodies. At the bound memory is short: after its first
 * bytes, a body is read only if there is room for the rest of it, and waits otherwise. So one body can always end. Bodies
 * of the clients with the fewest bytes come first.
 */
export class BodyMemory {
  /** The largest body. */
  readonly limitBytes: number;
  readonly clock: Clock;
  readonly pace: ReadingPace;
  readonly #inLine = inLine();
  /** Oldest first. */
  readonly #open = new Set<ReceivedBody>();
  readonly #owners = new Map<string, BodyOwner>();
  readonly #waiting = new Set<ReceivedBody>();
  /** Read while memory is short: what may still come of them has its room. */
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

  /** Counts a body of this client until it is closed. Its length is what the client says, or Infinity. */
  open(source: BodySource, length: number, client: string): ReceivedBody {
    const owner = this.#owners.get(client) ?? { name: client, bodies: new Set(), bytes: 0 };
    const most = Math.min(length, this.limitBytes);
    const body = new ReceivedBody(source, owner, most, this.clock, (each, count) => this.#add(each, count));
    if (this.#open.size === 0) this.#stopChecks = this.clock.every(checkEveryMs, () => this.#check());
    this.#owners.set(client, owner);
    owner.bodies.add(body);
    this.#open.add(body);
    return body;
  }

  close(body: ReceivedBody): void {
    if (!this.#open.delete(body)) return;
    this.#dismiss(body);
    this.#waiting.delete(body);
    this.#bytes -= body.bytes;
    body.owner.bytes -= body.bytes;
    body.owner.bodies.delete(body);
    body.close();
    if (body.owner.bodies.size === 0) this.#owners.delete(body.owner.name);
    if (this.#open.size === 0) this.#stopChecks();
    if (this.#isShort) this.#share();
  }

  /** Resolves in a turn of the loop of its own: between two bodies that take long to check, others are served. */
  takeTurn(): Promise<void> {
    return this.#inLine(endOfLoopTurn);
  }

  #add(body: ReceivedBody, count: number): void {
    this.#bytes += count;
    body.owner.bytes += count;
    if (this.#admitted.has(body)) this.#promised -= count;
    else if (this.#isShort) this.#place(body);
    else if (this.#isFull) this.#becomeShort();
  }

  /** Room is left for the whole of one. */
  get #isFull(): boolean {
    return this.#bytes >= Math.max(0, maxBytes - this.limitBytes);
  }

  #becomeShort(): void {
    this.#isShort = true;
    for (const body of this.#open) this.#place(body, false);
    this.#share();
  }

  /** After its first bytes, a body is read further only if there is room for all of it. */
  #place(body: ReceivedBody, mayRead = this.#hasRoomFor(body)): void {
    if (body.bytes <= freeBytes || body.rest === 0) return;
    if (mayRead) return this.#admit(body);
    this.#waiting.add(body);
    body.wait(true);
  }

  #hasRoomFor({ rest }: ReceivedBody): boolean {
    return this.#admitted.size === 0 || rest <= maxBytes - this.#bytes - this.#promised;
  }

  #admit(body: ReceivedBody): void {
    this.#waiting.delete(body);
    this.#admitted.add(body);
    this.#promised += body.rest;
    body.wait(false);
  }

  #dismiss(body: ReceivedBody): void {
    if (this.#admitted.delete(body)) this.#promised -= body.rest;
  }

  /** Has those read on that have room now; all of them where memory is no longer short. */
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
    this.close(body);
    body.source.giveUp();
  }

  /** A client that holds more than another one would hold with its body gives up its largest for that. */
  #makeRoomFor(body: ReceivedBody): void {
    while (this.#waiting.has(body) && body.waitedMs >= patienceMs) {
      const owners = [...this.#owners.values()].filter((owner) => owner !== body.owner);
      const greediest = owners.reduce<BodyOwner | null>(
        (most, each) => (each.bytes > (most?.bytes ?? 0) ? each : most),
        null,
      );
      if (greediest === null || greediest.bytes <= claimOf(body)) return;
      const largest = [...greediest.bodies].reduce((most, each) => (each.bytes > most.bytes ? each : most));
      this.close(largest);
      largest.source.yield();
    }
  }
}

/** What its client would hold with the whole of it. */
function claimOf({ owner, rest }: ReceivedBody): number {
  return owner.bytes + rest;
}

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

  /** Frees what has been received: a connection may outlive its body by far. Called by `BodyMemory` alone. */
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
