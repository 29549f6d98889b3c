import type { Clock, StopTimer } from '../../shared/clock.js';
import { ignoreFailure } from '../../shared/errors.js';
import type { LoggedText } from '../stores/contract/jobs.js';
import type { RedisConnection } from './redis-connection.js';

/** Interval at which the text of running jobs is stored. */
const storeMs = 250;
/** UTF-16 units per read, which fit into one IPC message. */
const pieceLength = 16 * 1024;
/** Texts are stored as UTF-16, because positions are counted in UTF-16 units. */
const bytesPerUnit = 2;

interface OpenText {
  readonly log: LoggedText;
  /** UTF-16 units that are already stored. */
  stored: number;
}

/** Tracks how much of the text of each job on this host is stored in Redis. */
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

  openText(id: string, log: LoggedText): void {
    this.#open.set(id, { log, stored: 0 });
  }

  forgetText(id: string): void {
    this.#open.delete(id);
  }

  /** Stores the complete text. Resolves with whether it replaces the text that was streamed. May be called again. */
  async storeWhole(id: string, log: LoggedText): Promise<boolean> {
    const open = this.#open.get(id) ?? { log, stored: 0 };
    const isReplaced = open.log !== log && open.log.length > 0;
    const text = open.log === log ? open : { log, stored: 0 };
    await this.#store(id, text, isReplaced);
    return isReplaced;
  }

  /** Reads text from UTF-16 unit `from`; empty at the end. */
  async readText(id: string, from: number): Promise<string> {
    const [first, last] = [from * bytesPerUnit, (from + pieceLength) * bytesPerUnit - 1];
    const { remaining: rest } = await this.#redis.run('job', 'jobs.readText', { id, first, last });
    const text = (rest[0] as Buffer).toString('utf16le');
    return text.length === pieceLength ? withoutHalf(text) : text;
  }

  stopSaving(): void {
    this.#stopTimer();
  }

  async #storeAll(): Promise<void> {
    if (this.#isStoring || this.#open.size === 0 || !this.#redis.isUp) return;
    this.#isStoring = true;
    const grown = [...this.#open].filter(([, { log, stored }]) => log.length > stored);
    // A piece that failed is stored with the next one, or at the end of the job.
    await Promise.all(grown.map(([id, text]) => this.#store(id, text, false).catch(ignoreFailure)));
    this.#isStoring = false;
  }

  async #store(id: string, text: OpenText, isAnswer: boolean): Promise<void> {
    for (let piece = text.log.readBlock(text.stored); piece !== ''; piece = text.log.readBlock(text.stored)) {
      const { verdict, remaining: rest } = await this.#redis.run('job', 'jobs.write', {
        ...{ id, run: this.#run, from: text.stored * bytesPerUnit, piece: Buffer.from(piece, 'utf16le') },
        isAnswer: isAnswer ? 1 : 0,
      });
      if (verdict === 'gone') return; // ended by another host, as lost
      // The length is less than expected if Redis restarted and lost its last second.
      text.stored = Math.floor(Number(rest[0]) / bytesPerUnit);
    }
  }
}

function withoutHalf(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}
