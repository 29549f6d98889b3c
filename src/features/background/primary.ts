import type { FeatureMetric, PrimaryCore, PrimaryPart } from '../../primary/features/feature.js';
import type { ClientText } from '../../shared/client.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { JobRequest } from '../../shared/job.js';
import { type StoringCore, usingStore } from '../stores/contract/full-store.js';
import { endedJobOf, type JobRecord } from '../stores/contract/jobs.js';
import { type BackgroundJob, BackgroundJobs } from './background-jobs.js';
import { ClientJobs } from './client-jobs.js';
import { JobPuller } from './job-puller.js';
import { observeBackground } from './observer.js';
import { RemoteJobs } from './remote-jobs.js';
import { type calls, metrics } from './shared.js';
import { StoredJobs } from './stored-jobs.js';

/** How often a host looks for jobs in the queue of all hosts, because some changes come without a notification. */
const checkMs = 1000;

/** Creates the part that owns the background jobs of this host. */
export const createBackground = usingStore((core) => new BackgroundFeature(core));

/** Returns the jobs of the service, for features that come later in the list. */
export function jobsOf({ earlierParts }: Pick<PrimaryCore, 'earlierParts'>): {
  readonly background: Pick<BackgroundJobs, 'get' | 'checkRoom' | 'giveAnswersOfLines'>;
  readonly clientJobs: ClientJobs;
} {
  const part = earlierParts.find((each) => each instanceof BackgroundFeature);
  if (part === undefined) throw new Error('the background jobs must come earlier in the list of features');
  return part;
}

class BackgroundFeature implements PrimaryPart {
  readonly background: BackgroundJobs;
  readonly clientJobs: ClientJobs;
  readonly handlers: Handlers<typeof calls>;
  readonly gauges: readonly FeatureMetric[];
  readonly #core: StoringCore;
  readonly #puller: JobPuller | null;

  constructor(core: StoringCore) {
    const { store, host, config } = core;
    this.#core = core;
    store.jobs.onLost = (record) => recordEnded(core, record);
    const observer = observeBackground(core);
    const parts = { store: store.jobs, stored: createStoredJobs(core), observer };
    this.background = new BackgroundJobs({ ...core, ...parts, clock: host.clock }, config);
    const recordEnd = (by: string, jobId: string, requestId: string) =>
      core.beforeAct({ act: 'job_ended', by, target: `job ${jobId}`, request_id: requestId });
    this.clientJobs = new ClientJobs(this.background, { ...core, ...parts, recordEnd });
    this.#puller = createPuller(core, this.background);
    this.handlers = jobHandlers(core, this.background, this.clientJobs);
    this.gauges = [
      { name: 'background_jobs', ...metrics.background_jobs, read: () => ({ ...core.localJobs.counts }) },
      { name: 'background_jobs_limit', ...metrics.background_jobs_limit, read: () => config.maxJobs },
    ];
  }

  get openJobs(): readonly BackgroundJob[] {
    return this.background.open;
  }

  restored(): Promise<void> {
    return this.background.restoreJobs();
  }

  start(): void {
    const puller = this.#puller;
    if (puller !== null) this.#core.host.clock.every(checkMs, () => puller.check());
  }

  slotsChanged(): void {
    this.#puller?.changed();
  }

  drain(): void {
    if (this.#core.store.jobs.isDurable) this.background.stopStarting(); // the next service runs the waiting jobs
  }

  cut(): void {
    this.background.stopStarting();
  }

  idle(): Promise<void> {
    return this.background.untilIdle();
  }

  async purgeClient(client: ClientText) {
    return { jobs: await this.clientJobs.removeOf(client) };
  }
}

/** Reports a job that the store or another host has ended; has no effect for an open one. */
function recordEnded({ jobHooks }: Pick<PrimaryCore, 'jobHooks'>, record: JobRecord): void {
  const ended = endedJobOf(record);
  if (ended !== null) jobHooks.backgroundEnded(ended);
}

/** Creates the access to stored jobs, and to jobs of other hosts. */
function createStoredJobs({ config: { jobTtlMs }, host, store, runner, jobHooks }: StoringCore): StoredJobs {
  const { shared } = store.jobs;
  if (shared === null) return new StoredJobs(store.jobs, jobTtlMs, host.clock);
  const dismiss = (request: JobRequest, reason: Error) => void runner.dismiss(request, reason);
  const listener = { dismiss, recordEnded: (record: JobRecord) => recordEnded({ jobHooks }, record) };
  return new RemoteJobs(shared, jobTtlMs, listener, host.clock);
}

/** Creates the puller, which hears of jobs and of cancelled ones from other hosts; null without a queue that hosts share. */
function createPuller({ store, host, localJobs }: StoringCore, background: BackgroundJobs): JobPuller | null {
  const { shared } = store.jobs;
  if (shared === null) return null;
  const puller = new JobPuller(shared, background, host.clock);
  shared.listen({
    added: () => puller.changed(),
    cancelled: (id, by) => background.cancelHere(id, by),
    cancelCaller: (order) => localJobs.cancelCaller(order),
  });
  return puller;
}

interface HandlerParts extends Pick<PrimaryCore, 'yieldInOrder'> {
  readonly jobEntry: Pick<PrimaryCore['jobEntry'], 'admit'>;
  readonly jobHooks: Pick<PrimaryCore['jobHooks'], 'admitBackground'>;
}

/** Returns the handlers of the calls about jobs. */
export function jobHandlers(
  { jobEntry, jobHooks, yieldInOrder }: HandlerParts,
  background: Pick<BackgroundJobs, 'accept'>,
  clientJobs: ClientJobs,
): Handlers<typeof calls> {
  return {
    accept: async ({ job: request, form, id }) => {
      jobHooks.admitBackground(request, form, id);
      return jobEntry.admit(request, (job) => background.accept(job, form, id));
    },
    job: ({ id, client }) => clientJobs.view(id, client),
    jobEvents: ({ id, client }, signal) => clientJobs.events(id, client, signal),
    jobAnswer: async ({ id, client, from }) => {
      await yieldInOrder();
      return clientJobs.answer(id, client, from);
    },
    jobs: (order) => clientJobs.listJobs(order),
    cancelJob: ({ id, client }) => clientJobs.cancelJob(id, client),
    deleteJob: async (order) => ({ status: await clientJobs.delete(order) }),
  };
}
