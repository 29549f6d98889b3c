import type { RedisPlace } from '../../../shared/config/store-place.js';
import type { SharedJobsListener } from '../../background/shared-jobs.js';
import { connectTo } from './redis-link.js';

/** Owns the connection on which this host hears of background jobs from the others. What it misses is looked for anyway. */
export class JobMessages {
  readonly #connection: ReturnType<typeof connectTo>;
  readonly #channel: string;
  #listener: SharedJobsListener | null = null;

  constructor(place: RedisPlace) {
    this.#connection = connectTo(place);
    this.#connection.on('error', () => {}); // the other connection tells it
    this.#channel = `${place.prefix}:jobs:told`;
    this.#connection.on('ready', () => this.subscribe());
    this.#connection.on('message', (_channel: string, message: string) => this.#hear(message));
  }

  listen(listener: SharedJobsListener): void {
    this.#listener = listener;
  }

  /** Also where it was refused before. */
  subscribe(): void {
    this.#connection.subscribe(this.#channel).catch(() => {}); // again with the next connection
  }

  close(): void {
    this.#connection.disconnect();
  }

  #hear(message: string): void {
    const [what, id] = message.split(' ');
    if (what === 'added') this.#listener?.added();
    if (what === 'cancel' && id !== undefined) this.#listener?.cancelled(id);
  }
}
