import type { Clock } from '../../shared/clock.js';
import type { RedisPlace } from '../../shared/config/store-place.js';
import type { SharedJobsListener } from '../store/contract/jobs.js';
import { connectTo, deadLinkMs } from './redis-link.js';

/** Owns the connection on which this host gets messages about background jobs. Nothing depends on one that is missed. */
export class JobMessages {
  readonly #connection: ReturnType<typeof connectTo>;
  readonly #channel: string;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #listener: SharedJobsListener | null = null;
  /** Since when there is no answer, monotonic; null: there is. */
  #askedMs: number | null = null;

  constructor(place: RedisPlace, clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
    this.#connection = connectTo(place);
    this.#connection.on('error', () => {}); // the other connection reports it
    this.#channel = `${place.prefix}:jobs:told`;
    this.#connection.on('ready', () => this.subscribe());
    this.#connection.on('close', () => {
      this.#askedMs = null;
    });
    this.#connection.on('message', (_channel: string, message: string) => this.#receive(message));
  }

  listen(listener: SharedJobsListener): void {
    this.#listener = listener;
  }

  /** Also where Redis has refused it before. */
  subscribe(): void {
    this.#askedMs ??= this.#clock.monotonicMs();
    const answered = () => {
      this.#askedMs = null;
    };
    this.#connection.subscribe(this.#channel).then(answered, answered);
  }

  /** Makes a dead connection anew. Called every two seconds, when Redis has just answered on another one. */
  reconnect(): void {
    if (this.#askedMs === null) this.subscribe();
    else if (this.#clock.monotonicMs() - this.#askedMs >= deadLinkMs) this.#connection.disconnect(true);
  }

  close(): void {
    this.#connection.disconnect();
  }

  #receive(message: string): void {
    const [what, id] = message.split(' ');
    if (what === 'added') this.#listener?.added();
    if (what === 'cancel' && id !== undefined) this.#listener?.cancelled(id);
  }
}
