import type { Clock, StopTimer } from '../../shared/clock.js';

/** All bodies that one worker is receiving, bytes. */
const maxBytes = 128 * 1024 ** 2;
/** A smaller one does not wait: Node takes as much of each connection anyway, and most requests are of this size. */
const smallBytes = 16 * 1024;
/** A body of which nothing comes for so long is given up. */
const silenceMs = 10_000;
/** The same while others wait for the memory that it holds. */
const silenceWhileFullMs = 2000;
const checkEveryMs = 500;

/** What is being received. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** Nothing has come for too long. It is counted no more. */
  giveUp(): void;
}

/**
 * Owns the count of what this worker holds of bodies that are not complete. When they reach the bound, all but the oldest
 * wait: they are not read, and so cost no more. The oldest is always read on, so there is always one that can end.
 */
export class BodyMemory {
  /** The largest body. */
  readonly limitBytes: number;
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #open = new Set<ReceivedBody>();
  #bytes = 0;
  #stopChecks: StopTimer = () => {};

  constructor(limitBytes: number, clock: Clock) {
    this.limitBytes = limitBytes;
    this.#clock = clock;
  }

  /** Counts a body until it is closed. Its length is what the client says, or Infinity. */
  open(source: BodySource, length: number): ReceivedBody {
    const body = new ReceivedBody(source, length, this.#clock, (bytes) => this.#add(bytes));
    if (this.#open.size === 0) this.#stopChecks = this.#clock.every(checkEveryMs, () => this.#check());
    this.#open.add(body);
    this.#share();
    return body;
  }

  close(body: ReceivedBody): void {
    if (!this.#open.delete(body)) return;
    this.#bytes -= body.bytes;
    if (this.#open.size === 0) this.#stopChecks();
    this.#share();
  }

  #add(bytes: number): void {
    const wasFull = this.#isFull;
    this.#bytes += bytes;
    if (this.#isFull !== wasFull) this.#share();
  }

  /** Room is left for the whole of the oldest. */
  get #isFull(): boolean {
    return this.#bytes >= Math.max(0, maxBytes - this.limitBytes);
  }

  #share(): void {
    const [oldest] = this.#open;
    for (const body of this.#open) body.wait(this.#isFull && body !== oldest && body.length > smallBytes);
  }

  #check(): void {
    const limitMs = this.#isFull && this.#open.size > 1 ? silenceWhileFullMs : silenceMs;
    for (const body of [...this.#open].filter(({ silentMs }) => silentMs >= limitMs)) {
      this.close(body);
      body.source.giveUp();
    }
  }
}

/** What has been received of one body. */
export class ReceivedBody {
  readonly source: BodySource;
  readonly length: number;
  readonly #clock: Clock;
  readonly #onBytes: (bytes: number) => void;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #heardMs: number;
  #isWaiting = false;

  constructor(source: BodySource, length: number, clock: Clock, onBytes: (bytes: number) => void) {
    this.source = source;
    this.length = length;
    this.#clock = clock;
    this.#onBytes = onBytes;
    this.#heardMs = clock.monotonicMs();
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#heardMs = this.#clock.monotonicMs();
    this.#onBytes(chunk.length);
  }

  /** All of it, in one piece. */
  whole(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  /** Called by its owner alone. */
  wait(isToWait: boolean): void {
    if (isToWait === this.#isWaiting) return;
    this.#isWaiting = isToWait;
    this.#heardMs = this.#clock.monotonicMs();
    if (isToWait) this.source.pause();
    else this.source.resume();
  }

  /** How long nothing has come, although it was read. */
  get silentMs(): number {
    return this.#isWaiting ? 0 : this.#clock.monotonicMs() - this.#heardMs;
  }
}
