import type { PrimaryCore } from '../../primary/features/feature.js';
import { renewalFaultsOf } from '../../primary/observe/renewal-faults.js';
import { breakerBodyOf } from '../../primary/observe/status.js';
import type { Sections, StatusBody } from '../../shared/api/status.js';
import { type ClientText, readClientId } from '../../shared/client.js';
import { timestamp } from '../../shared/clock.js';
import type { StoringCore } from '../stores/contract/full-store.js';
import type { LastHour } from './last-hour.js';

const maxClients = 50;
const maxChecks = 100;

type StatusPart = 'status' | 'room' | 'jobEntry' | 'openJobs' | 'localJobs' | 'jobHooks' | 'metrics';

/** Parts of the service whose state is shown. */
export interface SectionSources extends Pick<PrimaryCore, StatusPart> {
  readonly host: Pick<PrimaryCore['host'], 'product' | 'clock'>;
  readonly config: Pick<PrimaryCore['config'], 'needsKey' | 'maxJobs'>;
  readonly store: Pick<StoringCore['store'], 'jobs'>;
  readonly lastHour: Pick<LastHour, 'body' | 'day' | 'totalRequests'>;
}

/**
 * Returns the sections of GET /status. The sections contain times instead of ages, so that they do not change merely
 * because time passes. `withNames`: whether to include names of clients and process ids of workers.
 */
export function sectionsOf(sources: SectionSources, withNames: boolean): Sections {
  const { host, config, room, jobEntry, lastHour, metrics } = sources;
  const status = sources.status();
  const visible = () => status.visible(withNames);
  return {
    service: () => ({
      ...status.verdict,
      may_recheck: withNames && config.needsKey,
      version: host.product.version,
      started_at: status.startedAt,
      drain_ends_at: status.drainEndsAt,
    }),
    slots: () => slotsOf(sources, withNames),
    queue: () => ({
      max: room.limits.maxWaiting,
      waiting: room.waiting,
      full_since: room.fullSince === null ? null : timestamp(room.fullSince),
      refused_last_5_minutes: jobEntry.recentlyRefused,
      clients: waitingClientsOf(sources, withNames),
    }),
    background_jobs: () => backgroundLoadOf(sources),
    workers: () => status.workers(withNames),
    cli_processes: () => status.processCounts,
    renewals: () => renewalFaultsOf(visible()),
    breaker: () => breakerBodyOf(visible()),
    checks: () => status.checks(null, withNames).slice(-maxChecks),
    totals: () => ({ requests: lastHour.totalRequests, ...metrics.jobs.totals }),
    last_hour: () => lastHour.body,
    last_day: () => lastHour.day,
  };
}

function slotsOf({ room, openJobs, localJobs, jobHooks }: SectionSources, withNames: boolean): StatusBody['slots'] {
  const running = openJobs.running.map((job) => {
    const { client, operation, model } = job.request;
    const what = { client: nameOf(client, withNames), operation, model };
    const id = withNames ? localJobs.idOf(job) : null;
    return { job: job.number, id, ...what, started_at: timestamp(job.startedAt ?? 0) };
  });
  const reserved = [...jobHooks.reservedSlots];
  return { max: room.limits.maxActive, running, ...(reserved.length > 0 && { reserved }) };
}

function waitingClientsOf({ room }: SectionSources, withNames: boolean): StatusBody['queue']['clients'] {
  const oldest = room.waitingClients.sort((a, b) => a.oldestAt - b.oldestAt).slice(0, maxClients);
  return oldest.map(({ client, count, oldestAt, reason }) => ({
    client: nameOf(client, withNames),
    waiting: count,
    oldest_since: timestamp(oldestAt),
    reason,
  }));
}

/** Returns the background jobs: those that wait on all hosts, and those that run on this one. */
function backgroundLoadOf({ config, localJobs, store }: SectionSources): StatusBody['background_jobs'] {
  const { queued, running } = localJobs.counts;
  return { max: config.maxJobs, waiting: store.jobs.shared?.waiting.count ?? queued, running };
}

function nameOf(client: ClientText, withNames: boolean): string | null {
  return withNames ? readClientId(client).name : null;
}
