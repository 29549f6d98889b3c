import { withResolvers } from '../../shared/async.js';
import { type CallerJob, type CallerOrder, callerJob, callerOrder } from '../../shared/background.js';
import type { Clock } from '../../shared/clock.js';
import type { SharedJobsListener } from '../stores/contract/shared-jobs.js';
import { connectTo, deadLinkMs } from './redis-link.js';
import type { RedisPlace } from './shared.js';

/** Limit for the answer of the host that has the job. */
const answerLimitMs = 2000;

/** First words of messages: a request to cancel the job of a caller, and the confirmation. */
const [cancelCaller, callerCancelled] = ['cancel-caller', 'caller-cancelled'];

/** Owns the connection for messages between hosts. No background job depends on a message: a missed one only delays it. */
export class JobMessages {
  readonly #connection: ReturnType<typeof connectTo>;
  readonly #channel: string;
  readonly #clock: Pick<Clock, 'monotonicMs' | 'after'>;
  /** Sends a message to all hosts. */
  readonly publish: (message: string) => Promise<unknown>;
  #listener: SharedJobsListener | null = null;
  /** Receives the other messages. */
  onOther: (what: string, id: string, text: string) => void = () => {};
  /** Callers of `cancelCaller` that wait for a confirmation. */
  readonly #waiting = new Set<{ readonly id: string; ended(job: CallerJob): void }>();
  /** Monotonic time of the oldest unanswered SUBSCRIBE; null if none is open. */
  #askedMs: number | null = null;

  constructor(
    place: RedisPlace,
    clock: Pick<Clock, 'monotonicMs' | 'after'>,
    publish: (message: string) => Promise<unknown>,
  ) {
    this.#clock = clock;
    this.publish = publish;
    this.#connection = connectTo(place);
    this.#connection.on('error', () => {}); // the main connection reports errors
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

  /** Subscribes again, also after Redis has refused it. */
  subscribe(): void {
    this.#askedMs ??= this.#clock.monotonicMs();
    const answered = () => {
      this.#askedMs = null;
    };
    this.#connection.subscribe(this.#channel).then(answered, answered);
  }

  /**
   * Subscribes again to test the connection, and replaces the connection if the last SUBSCRIBE got no answer. Called
   * every two seconds, after Redis has answered on another connection.
   */
  reconnect(): void {
    if (this.#askedMs === null) this.subscribe();
    else if (this.#clock.monotonicMs() - this.#askedMs >= deadLinkMs) this.#connection.disconnect(true);
  }

  /**
   * Asks all hosts to cancel the job of a caller. Resolves with the job that a host has cancelled; null if no host
   * confirms in time.
   */
  async cancelCaller(order: CallerOrder): Promise<CallerJob | null> {
    const { promise, resolve } = withResolvers<CallerJob | null>();
    const waiting = { id: order.id, ended: resolve };
    this.#waiting.add(waiting);
    const stop = this.#clock.after(answerLimitMs, () => resolve(null));
    try {
      await this.publish(`${cancelCaller} ${order.id} ${JSON.stringify(order)}`);
      return await promise;
    } finally {
      stop();
      this.#waiting.delete(waiting);
    }
  }

  closeConnection(): void {
    this.#connection.disconnect();
  }

  #receive(message: string): void {
    const [what = '', id = '', ...words] = message.split(' ');
    const jobText = words.join(' ');
    this.onOther(what, id, jobText);
    if (what === 'added') this.#listener?.added();
    if (what === 'cancel') this.#listener?.cancelled(id, jobText || null);
    if (what === cancelCaller) this.#cancel(callerOrder.safeParse(parsed(jobText)).data);
    if (what === callerCancelled) this.#ended(id, callerJob.safeParse(parsed(jobText)).data);
  }

  #cancel(order: CallerOrder | undefined): void {
    const job = order && this.#listener?.cancelCaller(order);
    // Without a confirmation, the requesting host stops waiting after its limit.
    if (job) this.publish(`${callerCancelled} ${order.id} ${JSON.stringify(job)}`).catch(() => {});
  }

  #ended(id: string, job: CallerJob | undefined): void {
    for (const each of this.#waiting) if (each.id === id && job !== undefined) each.ended(job);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
