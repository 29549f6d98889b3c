import type { SectionName, StatusBody } from '../../shared/api/status.js';
import { readClientId } from '../../shared/client.js';
import { timestamp } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { BackgroundJobs } from '../background/background-jobs.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { AtLeastOne } from '../cli/models.js';
import type { Fleet } from '../fleet/fleet.js';
import type { Job } from '../jobs/job.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { SlotQueue } from '../jobs/slot-queue.js';
import type { Supervisor } from '../lifecycle/supervisor.js';
import type { LastHour } from '../metrics/last-hour.js';
import { breakerBodyOf, countsOf, historyOf, readinessBodyOf } from './bodies.js';
import type { Status } from './status.js';

const maxClients = 50;
const maxChecks = 100;

/** The owners of what is shown. */
export interface LiveSources {
  readonly status: Pick<Status, 'word' | 'reasons' | 'pressure' | 'startedAt'>;
  readonly config: Pick<Config, 'needsKey'>;
  readonly version: string;
  readonly supervisor: Pick<Supervisor, 'drainEndsAt'>;
  readonly slots: Pick<SlotQueue, 'limits' | 'waiting' | 'waitingClients'>;
  readonly runner: Pick<JobRunner, 'running'>;
  readonly background: Pick<BackgroundJobs, 'load'>;
  readonly fleet: Pick<Fleet, 'snapshot'>;
  readonly clis: AtLeastOne<Pick<ModelCli, 'pool' | 'breaker' | 'readiness' | 'publicName'>>;
  readonly lastHour: Pick<LastHour, 'body'>;
}

/** Makes one section of the body of GET /status. */
export type Sections = { readonly [N in SectionName]: () => StatusBody[N] };

/**
 * Composes what GET /status shows, from state alone, and with times instead of ages, so that nothing changes only because
 * time passes. `withNames`: names of clients and process ids of workers too.
 */
export function liveSections(sources: LiveSources, withNames: boolean): Sections {
  const { status, config, version, supervisor, slots, runner, background, fleet, clis, lastHour } = sources;
  const nameOf = (client: string) => (withNames ? readClientId(client).name : null);
  return {
    service: () => ({
      status: status.word,
      reasons: [...status.reasons],
      may_recheck: withNames && config.needsKey,
      version,
      started_at: status.startedAt,
      drain_ends_at: supervisor.drainEndsAt === null ? null : timestamp(supervisor.drainEndsAt),
    }),
    slots: () => ({ max: slots.limits.maxActive, running: runner.running.map((job) => runningBody(job, nameOf)) }),
    queue: () => ({
      max: slots.limits.maxWaiting,
      waiting: slots.waiting,
      full_since: status.pressure.queue_full_since,
      refused_last_5_minutes: status.pressure.refused_last_5_minutes,
      clients: waitingBodies(slots, nameOf),
    }),
    background_jobs: () => background.load,
    workers: () => (withNames ? fleet.snapshot() : fleet.snapshot().map(({ pid: _, ...worker }) => worker)),
    cli_processes: () => countsOf(clis),
    breaker: () => breakerBodyOf(clis),
    checks: () => historyOf(clis, null).slice(-maxChecks).map(readinessBodyOf),
    last_hour: () => lastHour.body,
  };
}

type ShownName = (client: string) => string | null;

function runningBody({ number, request, startedAt }: Job, nameOf: ShownName): StatusBody['slots']['running'][number] {
  const { client, operation, model } = request;
  return { job: number, client: nameOf(client), operation, model, started_at: timestamp(startedAt ?? 0) };
}

function waitingBodies({ waitingClients }: LiveSources['slots'], nameOf: ShownName): StatusBody['queue']['clients'] {
  const oldest = waitingClients.sort((a, b) => a.oldestAt - b.oldestAt).slice(0, maxClients);
  return oldest.map(({ client, count, oldestAt }) => ({
    client: nameOf(client),
    waiting: count,
    oldest_since: timestamp(oldestAt),
  }));
}
