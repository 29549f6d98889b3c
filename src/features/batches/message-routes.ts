import type { Request } from 'express';
import { z } from 'zod';
import { timestamp } from '../../shared/clock.js';
import { invalid, RelayError } from '../../shared/errors.js';
import { readBody } from '../../worker/http/body.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { onceFor, sendJson, sendRecorded } from '../../worker/http/responses.js';
import { setIgnoredQuery } from '../../worker/jobs/job-request.js';
import { anthropicFields, anthropicPage } from '../files/anthropic-form.js';
import { sendFile } from '../files/content.js';
import { pageBody } from '../files/pages.js';
import { storeFile } from '../files/upload.js';
import { checkApi } from './apis.js';
import { batchRequest } from './message-lines.js';
import { type BatchRouteParts, batchKey, callerOf } from './requests.js';
import type { BatchCalls } from './shared.js';
import type { BatchView } from './views.js';

export const messageBatchRequest = z.strictObject({
  requests: z.array(batchRequest, 'must be a list').min(1, 'must have at least one request'),
});

/** Creates a batch. Its requests are stored as a file of lines, like those of OpenAI's API. */
export function postMessageBatch(primary: BatchCalls, { bodies, features }: BatchRouteParts): AsyncHandler {
  return async (req, res) => {
    checkApi('messages', features.offlineRoutes);
    const { requests } = await readBody(req, res, bodies, messageBatchRequest);
    refuseRepeated(requests.map((request) => request.custom_id));
    const { client } = res.locals;
    await onceFor(res, 'background', async () => {
      await primary.call('checkBatch', { client, purpose: 'message_batch', lines: requests.length });
      const file = { client, purpose: 'message_batch', name: 'requests.jsonl' } as const;
      const inputFile = await storeFile(primary, file, linesOf(requests));
      const order = { client, caller: callerOf(res), api: 'messages', inputFile, metadata: null } as const;
      const batch = await primary.call('createBatch', order).catch((error: unknown) => {
        primary.call('deleteFile', { id: inputFile, client }).catch(() => {});
        throw error;
      });
      await sendRecorded(res, JSON.stringify(batchBody(req, batch)));
    });
  };
}

/** Yields a line for each request, so that their texts are not in memory together. */
function* linesOf(requests: readonly object[]): Generator<string> {
  for (const request of requests) yield JSON.stringify(request);
}

function refuseRepeated(ids: readonly string[]): void {
  const known = new Set<string>();
  for (const [index, id] of ids.entries()) {
    if (known.has(id))
      throw invalid(`requests.${index}.custom_id`, 'must differ from the custom_id of every other request');
    known.add(id);
  }
}

export function getMessageBatches(primary: BatchCalls): AsyncHandler {
  return async (req, res) => {
    setIgnoredQuery(req, res, anthropicFields);
    const { order, isReversed } = anthropicPage(req, res);
    const { batches, hasMore } = await primary.call('batches', { order, apis: ['messages'] });
    sendJson(
      res,
      pageBody(isReversed ? batches.toReversed() : batches, hasMore, (batch) => batchBody(req, batch)),
    );
  };
}

export function getMessageBatch(primary: BatchCalls): AsyncHandler {
  return async (req, res) => {
    const batch = await primary.call('batch', batchKey(req, res));
    sendJson(res, batchBody(req, checkedBatch(batch)));
  };
}

export function cancelMessageBatch(primary: BatchCalls): AsyncHandler {
  return async (req, res) => {
    checkedBatch(await primary.call('batch', batchKey(req, res)));
    sendJson(res, batchBody(req, await primary.call('cancelBatch', batchKey(req, res))));
  };
}

export function deleteMessageBatch(primary: BatchCalls): AsyncHandler {
  return async (req, res) => {
    const key = batchKey(req, res);
    checkedBatch(await primary.call('batch', key));
    await primary.call('deleteBatch', key);
    sendJson(res, { id: key.id, type: 'message_batch_deleted' });
  };
}

export function getMessageBatchResults(primary: BatchCalls): AsyncHandler {
  return async (req, res) => {
    const key = batchKey(req, res);
    const { outputFile: id, endedAt } = checkedBatch(await primary.call('batch', key));
    if (endedAt === null) throw invalid('message_batch_id', 'this batch has not ended, and has no results yet');
    if (id === null) throw new RelayError('not_found', 'the results of this batch were removed');
    const { bytes } = await primary.call('file', { id, client: key.client });
    await sendFile(primary, res, { id, client: key.client, bytes }, 'application/x-jsonl');
  };
}

/** Throws `not_found` for a batch of OpenAI's API. */
function checkedBatch(batch: BatchView): BatchView {
  if (batch.api !== 'messages') throw new RelayError('not_found', 'no such message batch');
  return batch;
}

function batchBody(req: Request, { id, status, total, counts, ...batch }: BatchView): object {
  const { createdAt, endedAt, cancelAt, expiresAt, outputFile } = batch;
  const { succeeded, errored, canceled, expired } = counts;
  const isOpen = status === 'waiting' || status === 'running';
  const openStatus = cancelAt === null ? 'in_progress' : 'canceling';
  const results = `${req.protocol}://${req.get('host')}/v1/messages/batches/${id}/results`;
  return {
    id,
    type: 'message_batch',
    processing_status: isOpen ? openStatus : 'ended',
    request_counts: { processing: total - succeeded - errored - canceled - expired, ...counts },
    ended_at: endedAt === null ? null : timestamp(endedAt),
    created_at: timestamp(createdAt),
    expires_at: timestamp(expiresAt),
    archived_at: null,
    cancel_initiated_at: cancelAt === null ? null : timestamp(cancelAt),
    results_url: outputFile === null ? null : results,
  };
}
