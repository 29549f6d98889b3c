import { z } from 'zod';
import { accessErrors } from '../../shared/api/endpoints.js';
import { sectionNames, statusBody } from '../../shared/api/status.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import type { Peer } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';

/** What both processes know of the live status. */

/** Changed sections of the status, each as JSON. The first item has all sections. */
const writtenSections = z.partialRecord(z.enum(sectionNames), z.string());
export type WrittenSections = z.infer<typeof writtenSections>;

export const calls = {
  /** Returns the body of GET /status. `withNames`: whether to include names of clients and process ids of workers. */
  status: { request: z.object({ withNames: z.boolean() }), answer: z.object({ text: z.string() }) },
  /** Streams changes of the status until the call is cancelled. */
  statusFeed: { request: z.object({ withNames: z.boolean() }), item: writtenSections },
};

/** Makes the calls about the status. */
export type StatusCalls = Pick<Peer<typeof calls, WorkerCalls>, 'call' | 'stream'>;

export const endpoints = [
  {
    ...{ method: 'GET', route: '/status', errors: accessErrors, id: 'getStatus' },
    summary: 'Current state of the service',
    description:
      'Slots and queue, background jobs, workers, processes of the model CLI, the last readiness checks, and the last hour by minute. Names of clients and process ids of workers are only visible to API keys with the scope `admin`, or to all callers if no key is configured. It never has the text of a prompt or an answer.',
    ...{ answer: statusBody, answerText: 'The status.' },
  },
  {
    ...{ method: 'GET', route: '/status/stream', errors: [...accessErrors, 'concurrency_limited'], id: 'followStatus' },
    summary: 'Current state of the service as a stream of changes',
    description:
      'Server-sent events: `snapshot` with the whole status; then `change` (`StatusChange`), at most twice a second, with the sections that have changed. A slow viewer receives a new snapshot. The stream ends when the API key is no longer valid and when the worker that serves it is replaced: connect again then.',
    answer: 'text/event-stream',
    answerText: 'The stream. `last_hour` and `last_day` come at most every five seconds.',
  },
] as const satisfies readonly FeatureEndpoint[];
