import { z } from 'zod';
import { inLines } from '../../shared/async.js';
import { holderOf } from '../../shared/client.js';
import { invalid } from '../../shared/errors.js';
import { readBody } from '../../worker/http/body.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { onceFor, sendJson, sendRecorded, untilGone } from '../../worker/http/responses.js';
import { setIgnoredQuery } from '../../worker/jobs/job-request.js';
import { openAiFields, openAiPage } from '../files/openai-form.js';
import { pageBody, seconds } from '../files/pages.js';
import type { BatchApi, BatchStatus } from '../stores/contract/files.js';
import { checkApi } from './apis.js';
import { refuseRepeatedIds } from './custom-ids.js';
import { type BatchRouteParts, batchKey, callerOf } from './requests.js';
import type { BatchCalls } from './shared.js';
import type { BatchView } from './views.js';

const apis = { '/v1/chat/completions': 'chat', '/v1/responses': 'responses' } as const;
type BatchEndpoint = keyof typeof apis;
const endpoints = Object.keys(apis) as BatchEndpoint[];

const maxEntries = 16;
const maxMetadataBytes = 16 * 1024;
const metadata = z
  .record(z.string().max(64, 'must have names of at most 64 characters'), z.string('must have texts').max(512))
  .refine((entries) => Object.keys(entries).length <= maxEntries, `must have at most ${maxEntries} entries`)
  .refine(
    (entries) => Buffer.byteLength(JSON.stringify(entries)) <= maxMetadataBytes,
    `must have at most ${maxMetadataBytes} bytes as JSON`,
  );

export const batchCreateRequest = z.strictObject({
  input_file_id: z.string('must be the id of a file').max(128),
  endpoint: z.enum(endpoints, `must be ${endpoints.join(' or ')}`),
  completion_window: z.literal('24h', 'must be 24h'),
  metadata: metadata.nullish(),
});

export function postBatch(primary: BatchCalls, { bodies, features }: BatchRouteParts): AsyncHandler {
  const inLineOf = inLines(); // each client reads one file at a time, so that clients have equal shares
  return async (req, res) => {
    const body = await readBody(req, res, bodies, batchCreateRequest);
    checkApi(apis[body.endpoint], features.offlineRoutes);
    const { client } = res.locals;
    const order = {
      client,
      caller: callerOf(res),
      api: apis[body.endpoint],
      inputFile: body.input_file_id,
      metadata: body.metadata ?? null,
    };
    await onceFor(res, 'background', async () => {
      using caller = untilGone(res);
      const key = { id: order.inputFile, client };
      const { purpose, lines } = await primary.call('file', key);
      await primary.call('checkBatch', { client, purpose, lines });
      await inLineOf(holderOf(client), () => refuseRepeatedIds(primary, key, caller.signal));
      await sendRecorded(res, JSON.stringify(batchBody(await primary.call('createBatch', order))));
    });
  };
}

export function getBatches(primary: BatchCalls): AsyncHandler {
  return async (req, res) => {
    setIgnoredQuery(req, res, openAiFields);
    const { order } = openAiPage(req, res);
    const { batches, hasMore } = await primary.call('batches', { order, apis: Object.values(apis) });
    sendJson(res, { object: 'list', ...pageBody(batches, hasMore, batchBody) });
  };
}

export function getBatch(primary: BatchCalls): AsyncHandler {
  return async (req, res) => sendJson(res, batchBody(await primary.call('batch', batchKey(req, res))));
}

export function cancelBatch(primary: BatchCalls): AsyncHandler {
  return async (req, res) => sendJson(res, batchBody(await primary.call('cancelBatch', batchKey(req, res))));
}

function batchBody(batch: BatchView): object {
  const { id, api, inputFile, outputFile, errorFile, total, counts } = batch;
  const { succeeded, errored, canceled, expired } = counts;
  return {
    id,
    object: 'batch',
    endpoint: endpointOf(api),
    errors: batch.status === 'failed' ? fileRemoved : null,
    input_file_id: inputFile,
    completion_window: '24h',
    status: statusOf(batch),
    output_file_id: outputFile,
    error_file_id: errorFile,
    ...timesOf(batch),
    request_counts: { total, completed: succeeded, failed: errored + canceled + expired },
    metadata: batch.metadata,
  };
}

const fileRemoved = {
  object: 'list',
  data: [{ code: 'file_removed', message: 'The input file was removed while the batch ran.', param: null, line: null }],
};

function endpointOf(api: BatchApi): BatchEndpoint {
  const found = endpoints.find((endpoint) => apis[endpoint] === api);
  if (found === undefined) throw invalid('batch_id', "is a batch of Anthropic's API: read /v1/messages/batches");
  return found;
}

const openStatuses: Readonly<Partial<Record<BatchStatus, string>>> = { waiting: 'validating', running: 'in_progress' };

function statusOf({ status, cancelAt, counts }: BatchView): string {
  if (status === 'failed') return 'failed';
  if (status !== 'ended') return cancelAt === null ? (openStatuses[status] ?? 'in_progress') : 'cancelling';
  if (cancelAt !== null) return 'cancelled';
  return counts.expired > 0 ? 'expired' : 'completed';
}

function timesOf(batch: BatchView): object {
  const { createdAt, startedAt, cancelAt, endedAt, expiresAt } = batch;
  const status = statusOf(batch);
  const endAs = (name: string) => (status === name && endedAt !== null ? seconds(endedAt) : null);
  return {
    created_at: seconds(createdAt),
    in_progress_at: startedAt === null ? null : seconds(startedAt),
    expires_at: seconds(expiresAt),
    finalizing_at: endAs('completed'),
    completed_at: endAs('completed'),
    failed_at: endAs('failed'),
    expired_at: endAs('expired'),
    cancelling_at: cancelAt === null ? null : seconds(cancelAt),
    cancelled_at: endAs('cancelled'),
  };
}
