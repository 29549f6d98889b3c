import type { Clock, StopTimer } from '../../shared/clock.js';
import type { LoggedText } from '../store/contract/jobs.js';
import type { RedisConnection } from './redis-connection.js';

/** How often the text of a running job is stored. */
const storeMs = 250;
/** UTF-16 units that are read at once: they fit into one message of the channel. */
const pieceLength = 16 * 1024;
/** Texts are stored in UTF-16, the units in which they are counted. */
const bytesPerUnit = 2;

interface OpenText {
  readonly log: LoggedText;
  /** UTF-16 units of the log that are stored. */
  stored: number;
}

/** Owns how much of the texts of the jobs that run here is in Redis. */
export class JobTexts {
  readonly #redis: RedisConnection;
  readonly #run: string;
  readonly #stopTimer: StopTimer;
  readonly #open = new Map<string, OpenText>();
  #isStoring = false;

  constructor(redis: RedisConnection, run: string, clock: Pick<Clock, 'every'>) {
    this.#redis = redis;
    this.#run = run;
    this.#stopTimer = clock.every(storeMs, () => void this.#storeAll());
  }

  open(id: string, log: LoggedText): void {
    this.#open.set(id, { log, stored: 0 });
  }

  forget(id: string): void {
    this.#open.delete(id);
  }

  /** Stores the whole of it. Resolves with whether it replaces what was stored so far. May be called again. */
  async storeWhole(id: string, log: LoggedText): Promise<boolean> {
    const open = this.#open.get(id) ?? { log, stored: 0 };
    const isReplaced = open.log !== log && open.log.length > 0;
    const text = open.log === log ? open : { log, stored: 0 };
    await this.#store(id, text, isReplaced);
    return isReplaced;
  }

  /** From that unit on; empty at the end. */
  async read(id: string, from: number): Promise<string> {
    const [first, last] = [from * bytesPerUnit, (from + pieceLength) * bytesPerUnit - 1];
    const { rest } = await this.#redis.run('job', 'jobs.readText', { id, first, last });
    const text = (rest[0] as Buffer).toString('utf16le');
    return text.length === pieceLength ? withoutHalf(text) : text;
  }

  stop(): void {
    this.#stopTimer();
  }

  async #storeAll(): Promise<void> {
    if (this.#isStoring || this.#open.size === 0 || !this.#redis.isUp) return;
    this.#isStoring = true;
    const grown = [...this.#open].filter(([, { log, stored }]) => log.length > stored);
    await Promise.all(grown.map(([id, text]) => this.#store(id, text, false).catch(() => {}))); // at its end at the latest
    this.#isStoring = false;
  }

  async #store(id: string, text: OpenText, isAnswer: boolean): Promise<void> {
    for (let piece = text.log.read(text.stored); piece !== ''; piece = text.log.read(text.stored)) {
      const { verdict, rest } = await this.#redis.run('job', 'jobs.write', {
        ...{ id, run: this.#run, from: text.stored * bytesPerUnit, piece: Buffer.from(piece, 'utf16le') },
        isAnswer: isAnswer ? 1 : 0,
      });
      if (verdict === 'gone') return; // it has ended by now, as lost
      text.stored = Math.floor(Number(rest[0]) / bytesPerUnit); // less if Redis was restarted and has lost the last second
    }
  }
}

function withoutHalf(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}
