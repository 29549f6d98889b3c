import type { Clock, StopTimer } from '../../../shared/clock.js';
import type { LoggedText } from '../contract/jobs.js';
import type { RedisConnection } from './redis-connection.js';

/** What a job has said is kept at this pace while it runs. */
const keepMs = 250;
/** What is read at once, UTF-16 units: it fits into one message of the channel. */
const pieceLength = 16 * 1024;
/** A text lies there in UTF-16, as it is counted. */
const bytesPerUnit = 2;

interface OpenText {
  readonly log: LoggedText;
  /** Of the log, UTF-16 units. */
  kept: number;
}

/** Owns the texts of the jobs that this host runs, as far as they are in Redis. */
export class JobTexts {
  readonly #redis: RedisConnection;
  readonly #run: string;
  readonly #stopTimer: StopTimer;
  readonly #open = new Map<string, OpenText>();
  #isKeeping = false;

  constructor(redis: RedisConnection, run: string, clock: Pick<Clock, 'every'>) {
    this.#redis = redis;
    this.#run = run;
    this.#stopTimer = clock.every(keepMs, () => void this.#keepAll());
  }

  open(id: string, log: LoggedText): void {
    this.#open.set(id, { log, kept: 0 });
  }

  forget(id: string): void {
    this.#open.delete(id);
  }

  /** Keeps the whole of it. Resolves with whether it is another one than what was told so far. May be called again. */
  async keepWhole(id: string, log: LoggedText): Promise<boolean> {
    const open = this.#open.get(id) ?? { log, kept: 0 };
    const isReplaced = open.log !== log && open.log.length > 0;
    const text = open.log === log ? open : { log, kept: 0 };
    await this.#keep(id, text, isReplaced ? 'answer' : 'told');
    return isReplaced;
  }

  /** From that unit on; empty at the end. */
  async read(id: string, from: number): Promise<string> {
    const [first, last] = [from * bytesPerUnit, (from + pieceLength) * bytesPerUnit - 1];
    const { rest } = await this.#redis.run('job', 'readJobText', [], [this.#redis.key(), id, first, last]);
    const text = (rest[0] as Buffer).toString('utf16le');
    return text.length === pieceLength ? withoutHalf(text) : text;
  }

  stop(): void {
    this.#stopTimer();
  }

  async #keepAll(): Promise<void> {
    if (this.#isKeeping || this.#open.size === 0 || !this.#redis.isUp) return;
    this.#isKeeping = true;
    const grown = [...this.#open].filter(([, { log, kept }]) => log.length > kept);
    await Promise.all(grown.map(([id, text]) => this.#keep(id, text, 'told').catch(() => {}))); // at its end at the latest
    this.#isKeeping = false;
  }

  async #keep(id: string, text: OpenText, which: 'told' | 'answer'): Promise<void> {
    for (let piece = text.log.read(text.kept); piece !== ''; piece = text.log.read(text.kept)) {
      const args = [this.#redis.key(), id, this.#run, text.kept * bytesPerUnit, Buffer.from(piece, 'utf16le'), which];
      const { verdict, rest } = await this.#redis.run('job', 'tellJob', [], args);
      if (verdict === 'gone') return; // it has ended by now, as lost
      text.kept = Math.floor(Number(rest[0]) / bytesPerUnit); // less where Redis was restarted and has lost the last second
    }
  }
}

function withoutHalf(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}
