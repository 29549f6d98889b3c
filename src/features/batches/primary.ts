import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import type { StoredKind } from '../../primary/features/stored-kind.js';
import { atMost } from '../../shared/async.js';
import type { Config } from '../../shared/config/config.js';
import { isDefect, storeUnavailable } from '../../shared/errors.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { describeError } from '../../shared/log/logger.js';
import { formatSpan } from '../../shared/text/format.js';
import type { BackgroundJobs } from '../background/background-jobs.js';
import type { ClientJobs } from '../background/client-jobs.js';
import { jobsOf } from '../background/primary.js';
import { viewOf, withoutOutput } from '../background/stored-jobs.js';
import { filesOf, storedAsFiles } from '../files/primary.js';
import type { FileValues } from '../files/shared.js';
import type { StoredFiles } from '../files/stored-files.js';
import type { BatchApi } from '../stores/contract/files.js';
import { type StoringCore, usingStore } from '../stores/contract/full-store.js';
import type { JobRecord, JobStore } from '../stores/contract/jobs.js';
import type { LineJobs, LineWorker } from './batch-feeder.js';
import { Batches, type BatchParts } from './batches.js';
import { type BatchValues, type calls, metrics, type workerCalls } from './shared.js';
import { batchApis, type LineOutcome } from './views.js';

export function createBatches({ MODEL_API_MAX_BATCH_LINES: maxLines }: BatchValues): CreatePrimaryPart {
  return usingStore((core) => {
    const files = filesOf(core);
    const fileValues = core.config.featureValues as FileValues;
    const counts = new EndedLines();
    const jobs = jobsOf(core);
    const parts = batchParts({ ...core, ...jobs }, files, (api, outcome) => counts.countLine(api, outcome));
    const batches = new Batches(parts, { maxLines, maxJobs: core.config.maxJobs, ttlMs: files.ttlMs });
    jobs.background.giveAnswersOfLines((answer) => batches.takeAnswer(answer));
    return {
      job: {
        admit: (_request, { line }, id) => {
          if (line !== undefined) batches.checkSending(id ?? '');
        },
        ended: ({ form, request }) => {
          if (form.line !== undefined) batches.jobEnded(request.client);
        },
      },
      handlers: handlersOf(batches),
      counters: [counts.metric],
      gauges: [{ name: 'batches_running', ...metrics.batches_running, read: () => batches.running }],
      modelAbilities: files.isOn ? ['batch'] : [],
      storedKinds: [storedBatches(core.config.store, fileValues)],
      start: () => batches.startFeeding(),
      drain: () => batches.stopFeeding(),
      stop: () => batches.untilIdle(),
    };
  });
}

function handlersOf(batches: Batches): Handlers<typeof calls> {
  return {
    checkBatch: ({ client, ...input }) => batches.checkInput(client, input),
    createBatch: (batch) => batches.createBatch(batch),
    batch: ({ id, client }) => batches.get(id, client),
    batches: ({ order, apis }) => batches.listBatches(order, apis),
    cancelBatch: ({ id, client }) => batches.cancel(id, client),
    deleteBatch: ({ id, client }) => batches.removeBatch(id, client),
  };
}

/** Counts the lines that have a result. Each API is in the metrics from the start. */
class EndedLines {
  readonly #counts: Record<BatchApi, Record<LineOutcome, number>> = {};

  constructor() {
    for (const api of batchApis) this.#countsOf(api);
  }

  get metric() {
    return { name: 'batch_lines_total', ...metrics.batch_lines_total, read: () => this.#counts };
  }

  countLine(api: BatchApi, outcome: LineOutcome): void {
    this.#countsOf(api)[outcome]++;
  }

  #countsOf(api: BatchApi): Record<LineOutcome, number> {
    const counts = this.#counts[api] ?? { succeeded: 0, errored: 0, canceled: 0, expired: 0 };
    this.#counts[api] = counts;
    return counts;
  }
}

export function storedBatches(store: Config['store'], values: FileValues): StoredKind {
  const common = storedAsFiles(store, values);
  return {
    ...{ kind: 'batches', content: 'requests and results of a batch', ...common },
    until: `${formatSpan(common.keptMs)} after its end`,
    export: 'GET /v1/batches/{id}, or GET /v1/messages/batches/{id}/results',
    deletion: 'its files, or DELETE /v1/messages/batches/{id}',
  };
}

/** Parts of the primary that batches use. */
type UsedParts = Pick<StoringCore, 'host' | 'store' | 'workers'> & {
  readonly background: Pick<BackgroundJobs, 'get'>;
  readonly clientJobs: Pick<ClientJobs, 'cancelJob'>;
  readonly config: Pick<Config, 'maxConcurrent' | 'maxJobs'>;
};

export function batchParts(
  parts: UsedParts,
  files: Pick<StoredFiles, 'checkOn' | 'checkRoom' | 'createFile' | 'findFile' | 'hasRoom'>,
  lineEnded: BatchParts['lineEnded'],
): BatchParts {
  const { config, host, store, workers } = parts;
  return {
    ...{ store: store.files, files, clock: host.clock, inTurn: atMost(longLinesAtOnce) },
    jobs: lineJobs(parts, store.jobs),
    worker: () => lineWorker(workers),
    maxOpen: openLines(config.maxConcurrent, config.maxJobs),
    hasRoom: (client) => files.hasRoom(client),
    lineEnded,
    onFailure: (error) => isDefect(error) && host.log.error('internal_error', { error: describeError(error) }),
  };
}

/** Returns the calls of a worker about lines; null if no worker listens. */
function lineWorker(workers: PrimaryCore['workers']): LineWorker | null {
  const peer = workers.nextPeer<typeof workerCalls>();
  if (peer === null) return null;
  return {
    submitLine: (order) => peer.call('submitLine', order),
    writeLine: (order) => peer.call('writeLine', order),
    endLines: (order) => peer.call('endLines', order),
  };
}

/** Returns the background jobs as batches need them. */
function lineJobs(
  { background, clientJobs }: Pick<UsedParts, 'background' | 'clientJobs'>,
  store: Pick<JobStore, 'findJob' | 'readText' | 'removeJob'>,
): LineJobs {
  return {
    findEndedLine: async (id, client) => {
      if (background.get(id) !== null) return null;
      const record = await store.findJob(id, client);
      if (record === null) return 'missing';
      const { end } = record;
      return end && { job: viewOf(record), end: withoutOutput(end), text: () => storedText(store, record) };
    },
    cancelJob: async (id, client) => void (await clientJobs.cancelJob(id, client)),
    removeJob: (id) => store.removeJob(id),
  };
}

/** Reads a whole stored answer. Rejects if its job was removed during the read, because the text would lack its end. */
async function storedText(store: Pick<JobStore, 'findJob' | 'readText'>, { id, client }: JobRecord): Promise<string> {
  const pieces: string[] = [];
  let from = 0;
  for (let piece = await store.readText(id, from); piece !== ''; piece = await store.readText(id, from)) {
    pieces.push(piece);
    from += piece.length;
  }
  if ((await store.findJob(id, client)) === null) throw storeUnavailable('the job of a line was removed');
  return pieces.join('');
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
