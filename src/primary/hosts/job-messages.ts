import { withResolvers } from '../../shared/async.js';
import { type CallerJob, type CallerOrder, callerJob, callerOrder } from '../../shared/background.js';
import type { Clock } from '../../shared/clock.js';
import type { RedisPlace } from '../../shared/config/values.js';
import { connectTo, deadLinkMs } from './redis-link.js';

/** What a host learns from the others. */
export interface SharedJobsListener {
  /** One more job is queued. */
  added(): void;
  /** `by`: an administrator; null for the client of the job. */
  cancelled(id: string, by: string | null): void;
  /** Ends the job of a caller. null: this host does not have it. */
  cancelCaller(order: CallerOrder): CallerJob | null;
}

/** A host that has the job answers well within this time. */
const answerLimitMs = 2000;

/** The words of messages about the job of a caller: it is to end, and it has ended. */
const [cancelCaller, callerCancelled] = ['cancel-caller', 'caller-cancelled'];

/** Owns the connection on which this host gets messages about jobs. No background job depends on one that is missed. */
export class JobMessages {
  readonly #connection: ReturnType<typeof connectTo>;
  readonly #channel: string;
  readonly #clock: Pick<Clock, 'monotonicMs' | 'after'>;
  /** Sends a message to all hosts. */
  readonly publish: (message: string) => Promise<unknown>;
  #listener: SharedJobsListener | null = null;
  /** Who waits for the end of a job of a caller. */
  readonly #waiting = new Set<{ readonly id: string; ended(job: CallerJob): void }>();
  /** Since when there is no answer, monotonic; null: there is. */
  #askedMs: number | null = null;

  constructor(
    place: RedisPlace,
    clock: Pick<Clock, 'monotonicMs' | 'after'>,
    publish: (message: string) => Promise<unknown>,
  ) {
    this.#clock = clock;
    this.publish = publish;
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

  /** Resolves with whose job the host that has it has ended; null: no host has said so in time. */
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

  close(): void {
    this.#connection.disconnect();
  }

  #receive(message: string): void {
    const [what, id = '', ...words] = message.split(' ');
    const rest = words.join(' ');
    if (what === 'added') this.#listener?.added();
    if (what === 'cancel') this.#listener?.cancelled(id, rest || null);
    if (what === cancelCaller) this.#cancel(callerOrder.safeParse(parsed(rest)).data);
    if (what === callerCancelled) this.#ended(id, callerJob.safeParse(parsed(rest)).data);
  }

  #cancel(order: CallerOrder | undefined): void {
    const job = order && this.#listener?.cancelCaller(order);
    if (job) this.publish(`${callerCancelled} ${order.id} ${JSON.stringify(job)}`).catch(() => {}); // its asker gives up
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
