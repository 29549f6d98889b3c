import { atMost } from '../../shared/async.js';
import type { Config } from '../../shared/config/config.js';
import { isDefect } from '../../shared/errors.js';
import { describeError } from '../../shared/log/logger.js';
import type { StoredFiles } from '../files/stored-files.js';
import type { BackgroundJobs } from '../jobs/background-jobs.js';
import type { ClientJobs } from '../jobs/client-jobs.js';
import type { Host } from '../lifecycle/host.js';
import type { JobMetrics } from '../observe/job-metrics.js';
import type { JobStore } from '../store/contract/jobs.js';
import type { Store } from '../store/contract/store.js';
import type { WorkerPeer } from '../workers/worker-handle.js';
import type { Workers } from '../workers/workers.js';
import type { LineJobs, LineWorker } from './batch-feeder.js';
import type { BatchLimits, BatchParts } from './batches.js';

/** Parts of the primary that batches use. */
interface UsedParts {
  readonly config: Pick<Config, 'maxConcurrent' | 'maxJobs'>;
  readonly host: Pick<Host, 'clock' | 'log'>;
  readonly store: Pick<Store, 'files' | 'jobs'>;
  readonly files: StoredFiles;
  readonly background: Pick<BackgroundJobs, 'get'>;
  readonly clientJobs: Pick<ClientJobs, 'cancel'>;
  readonly workers: Pick<Workers, 'nextPeer'>;
  readonly metrics: { readonly jobs: Pick<JobMetrics, 'countLine'> };
}

export function batchParts(parts: UsedParts): BatchParts {
  const { config, host, store, files, workers, metrics } = parts;
  return {
    ...{ store: store.files, files, clock: host.clock, inTurn: atMost(longLinesAtOnce) },
    jobs: lineJobs(parts.background, parts.clientJobs, store.jobs),
    worker: () => lineWorker(workers.nextPeer()),
    maxOpen: openLines(config.maxConcurrent, config.maxJobs),
    hasRoom: (client) => files.hasRoom(client),
    lineEnded: (api, outcome) => metrics.jobs.countLine(api, outcome),
    onFailure: (error) => isDefect(error) && host.log.error('internal_error', { error: describeError(error) }),
  };
}

export function batchLimits({ maxBatchLines, fileTtlMs }: Pick<Config, 'maxBatchLines' | 'fileTtlMs'>): BatchLimits {
  return { maxLines: maxBatchLines, ttlMs: fileTtlMs };
}

/** Returns the background jobs as batches need them. */
function lineJobs(
  background: Pick<BackgroundJobs, 'get'>,
  clientJobs: Pick<ClientJobs, 'cancel'>,
  store: Pick<JobStore, 'find' | 'remove'>,
): LineJobs {
  return {
    isOpenHere: (id) => background.get(id) !== null,
    findEnd: async (id, client) => {
      const record = await store.find(id, client);
      return record === null ? 'missing' : record.end;
    },
    cancel: async (id, client) => void (await clientJobs.cancel(id, client)),
    remove: (id) => store.remove(id),
  };
}

/** Returns the calls of a worker about lines. */
function lineWorker(peer: WorkerPeer | null): LineWorker | null {
  if (peer === null) return null;
  return {
    submitLine: (order) => peer.call('submitLine', order),
    finishLine: (order) => peer.call('finishLine', order),
    endLines: (order) => peer.call('endLines', order),
  };
}

/** Long lines of all batches that workers read at once. */
const longLinesAtOnce = 4;
/** Largest number of open lines of one batch. */
const mostOpen = 256;

/**
 * Returns the number of lines of one batch that may have an open job: enough for all slots, and for as many lines that
 * wait for them, but at most half of the waiting jobs that a client may have.
 */
function openLines(slots: number, maxJobs: number): number {
  return Math.max(1, Math.min(2 * slots + 2, Math.floor(maxJobs / 4), mostOpen));
}
