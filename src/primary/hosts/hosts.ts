import type { Clock } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { RedisPlace } from '../../shared/config/store-place.js';
import type { JobRequest } from '../../shared/job.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { BackgroundJobs } from '../jobs/background-jobs.js';
import { ConversationReplica } from './conversation-replica.js';
import { JobPuller } from './job-puller.js';
import { openRedis, type RedisStore, sharedLimits } from './redis-store.js';
import { RemoteJobs } from './remote-jobs.js';

/** How often this host says that it lives. */
const renewMs = 2000;

/** Makes what a service has only where several hosts share a Redis. The composition loads this file only then. */
export class Hosts {
  readonly store: RedisStore;
  readonly #clock: Clock;

  static async open(place: RedisPlace, config: Config, clock: Clock): Promise<Hosts> {
    return new Hosts(await openRedis(place, clock, sharedLimits(config)), clock);
  }

  private constructor(store: RedisStore, clock: Clock) {
    this.store = store;
    this.#clock = clock;
  }

  /** `onStale` is called for a conversation that another host has continued. */
  replicaOf(conversations: ConversationStore, onStale: (id: string) => void): ConversationReplica {
    return new ConversationReplica(conversations, this.store.conversations, this.#clock, onStale);
  }

  /** `dismiss` gets each job that is cancelled while it waits. */
  remoteJobs(dismiss: (request: JobRequest, reason: Error) => void): RemoteJobs {
    return new RemoteJobs(this.store.jobs, dismiss, this.#clock);
  }

  puller(background: BackgroundJobs): JobPuller {
    const { jobs } = this.store;
    const puller = new JobPuller(jobs, background, this.#clock);
    jobs.listen({ added: () => puller.changed(), cancelled: (id) => background.cancelHere(id) });
    return puller;
  }

  /** From now on the other hosts know that this one lives. */
  start(): void {
    this.#clock.every(renewMs, () => this.store.jobs.renew(this.#clock.now()).catch(() => {})); // the next time does it
  }
}
