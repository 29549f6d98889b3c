import type { SharedRemovals } from '../../primary/hosts/hosts.js';
import { withResolvers } from '../../shared/async.js';
import { type ClientText, clientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { ignoreFailure, storeUnavailable } from '../../shared/errors.js';
import { newId } from '../../shared/ids.js';
import type { JobMessages } from './job-messages.js';

/** Time for all hosts to confirm. Each waits up to 10 s for its jobs to end. */
const confirmMs = 15_000;
/** Time after which a host no longer waits for the end of a removal, because the host that removes may have died. */
const maxMs = 300_000;

/** First words of messages: the begin, its confirmation, and the end. */
const [begins, begun, ends] = ['removal-begins', 'removal-begun', 'removal-ends'];

/** Owns the removals of clients that hosts of one Redis run together, by messages. */
export class RedisRemovals implements SharedRemovals {
  readonly #messages: Pick<JobMessages, 'publish' | 'onOther'>;
  readonly #clock: Pick<Clock, 'after'>;
  /** Removals of this host, with what is called for each confirmation. */
  readonly #confirmations = new Map<string, () => void>();
  /** Removals of other hosts that have not ended. */
  readonly #joined = new Map<string, Promise<Disposable>>();
  #begin: ((client: ClientText) => Promise<Disposable>) | null = null;

  constructor(messages: Pick<JobMessages, 'publish' | 'onOther'>, clock: Pick<Clock, 'after'>) {
    this.#messages = messages;
    this.#clock = clock;
    messages.onOther = (what, id, text) => this.#receive(what, id, text);
  }

  listen(begin: (client: ClientText) => Promise<Disposable>): void {
    this.#begin = begin;
  }

  async beginRemoval(client: ClientText): Promise<Disposable> {
    const id = newId();
    const { promise, resolve, reject } = withResolvers<void>();
    let [confirmed, expected] = [0, Number.POSITIVE_INFINITY];
    const check = () => (confirmed >= expected ? resolve() : undefined);
    this.#confirmations.set(id, () => {
      confirmed++;
      check();
    });
    const late = 'a host has not ended what it runs for this client: try again';
    const stop = this.#clock.after(confirmMs, () => reject(storeUnavailable(late)));
    const end = () => {
      this.#confirmations.delete(id);
      this.#messages.publish(`${ends} ${id}`).catch(ignoreFailure); // the other hosts end it after a while
    };
    try {
      expected = Number(await this.#messages.publish(`${begins} ${id} ${client}`)); // the hosts that get it
      check();
      await promise;
      return { [Symbol.dispose]: end };
    } catch (error) {
      end();
      throw error;
    } finally {
      stop();
    }
  }

  #receive(what: string, id: string, text: string): void {
    const { data: client } = clientText.safeParse(text);
    if (what === ends) this.#end(id);
    else if (what === begun || (what === begins && this.#confirmations.has(id))) this.#confirmations.get(id)?.();
    else if (what === begins && client !== undefined) void this.#join(id, client);
  }

  /** Takes part in the removal of another host. */
  async #join(id: string, client: ClientText): Promise<void> {
    const removal = this.#begin?.(client) ?? Promise.resolve({ [Symbol.dispose]: () => {} });
    this.#joined.set(id, removal);
    this.#clock.after(maxMs, () => this.#end(id));
    await removal;
    await this.#messages.publish(`${begun} ${id}`).catch(ignoreFailure); // the other host tries again
  }

  #end(id: string): void {
    const removal = this.#joined.get(id);
    this.#joined.delete(id);
    void removal?.then((each) => each[Symbol.dispose]());
  }
}
