import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, endOfLoopTurn, type StopTimer } from '../../shared/clock.js';
import { stopReadsWhile } from '../../shared/node-internals/connections.js';

/** A piece costs as much as a large one: a chunked body may come in pieces of one byte. */
const smallBytes = 512;
/** After so many a body rests, and for how long for each of them: so one connection takes some 5 % of a core at most. */
const maxPieces = 1024;
const leastRestMsPerPiece = 0.015;
/** More of them than this share what so many take: 20 % of a core. */
const maxShares = 4;

/** Owns the number of bodies in small pieces that one worker reads. Clients may go at once and leave theirs in the kernel. */
export class ReadingPace {
  readonly clock: Clock;
  #count = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get restMsPerPiece(): number {
    return leastRestMsPerPiece * Math.max(1, this.#count / maxShares);
  }

  begin(): void {
    this.#count++;
  }

  end(): void {
    this.#count--;
  }
}

/**
 * Owns whether one body is read at the moment. It stops the socket instead of the body: Node goes on reading for a body
 * that is paused, and keeps each piece with some hundred bytes of its own.
 */
export class PacedReading {
  readonly #req: IncomingMessage;
  readonly #pace: ReadingPace;
  #pieces = 0;
  #isWaiting = false;
  #isResting = false;
  #isCounted = false;
  #stopTimer: StopTimer = () => {};

  constructor(req: IncomingMessage, pace: ReadingPace) {
    this.#req = req;
    this.#pace = pace;
    stopReadsWhile(req, () => this.#isStopped);
    req.once('close', () => this.#end());
  }

  /** To be called with each piece. */
  took({ length }: Buffer): void {
    if (length < smallBytes) this.#pieces++;
    if (this.#pieces >= maxPieces && !this.#isResting) this.#rest();
  }

  pause(): void {
    this.#isWaiting = true;
    this.#req.socket.pause();
  }

  resume(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#goOn();
  }

  get #isStopped(): boolean {
    return this.#isWaiting || this.#isResting;
  }

  /**
   * The rest grows with the pieces, those included that were read already. It is up to twice as long by chance: else many
   * bodies that began together would all be read in the same turn of the loop.
   */
  #rest(): void {
    this.#isResting = true;
    this.#req.socket.pause();
    if (!this.#isCounted) this.#pace.begin();
    this.#isCounted = true;
    void endOfLoopTurn().then(() => {
      const restMs = this.#pieces * this.#pace.restMsPerPiece * (1 + Math.random());
      if (this.#isResting) this.#stopTimer = this.#pace.clock.after(restMs, () => this.#rested());
    });
  }

  #rested(): void {
    this.#pieces = 0;
    this.#isResting = false;
    this.#goOn();
  }

  /** The socket may have a further request. */
  #end(): void {
    this.#stopTimer();
    if (this.#isCounted) this.#pace.end();
    this.#isCounted = false;
    this.#isWaiting = false;
    this.#rested();
  }

  #goOn(): void {
    if (!this.#isStopped) this.#req.socket.resume();
  }
}

/** Reads and drops what comes of a body that nobody reads. Node itself would do so without a rest. */
function dropBody(req: IncomingMessage, pace: ReadingPace): void {
  if (req.complete || req.listenerCount('data') > 0) return;
  const reading = new PacedReading(req, pace);
  req.on('data', (piece: Buffer) => reading.took(piece));
  req.read(0); // from here on Node takes it for read, and drops nothing of it itself
}

/** Nobody reads a body but that of a POST, and that not always. */
export function dropUnread(req: IncomingMessage, res: ServerResponse, pace: ReadingPace): void {
  if (req.headers['transfer-encoding'] === undefined) return;
  if (req.method === 'POST') res.once('prefinish', () => dropBody(req, pace));
  else dropBody(req, pace);
}
