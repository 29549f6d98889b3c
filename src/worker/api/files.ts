import type { Request } from 'express';
import { uploadPurposeQuery } from '../../shared/api/files.js';
import { timestamp } from '../../shared/clock.js';
import { invalid } from '../../shared/errors.js';
import type { FilePurpose, FileView } from '../../shared/files.js';
import { sendFile } from '../files/content.js';
import { anthropicFields, anthropicPage, openAiFields, openAiPage, pageBody, seconds } from '../files/pages.js';
import { receiveFile } from '../files/upload.js';
import { queryOf } from '../http/body.js';
import type { AsyncHandler, Primary, Reply } from '../http/exchange.js';
import { sendJson } from '../http/responses.js';
import { setIgnoredQuery } from '../jobs/job-request.js';
import type { JobParts } from '../jobs/run-job.js';
import { speaksAnthropic } from './doors.js';

/** Files for the SDKs of OpenAI and Anthropic. Both APIs have the same paths, and other bodies. */

export function postFile({ primary, bodies }: JobParts): AsyncHandler {
  return async (req, res) => {
    const usual = speaksAnthropic(req) ? 'user_data' : null;
    const { file, unknown } = await receiveFile(primary, req, res, bodies.pace, usual);
    setIgnoredQuery({ query: Object.fromEntries(unknown.map((name) => [name, true])) }, res, new Set());
    sendJson(res, bodyOf(req, file));
  };
}

export function getFiles(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const isAnthropic = speaksAnthropic(req);
    if (Object.keys(req.query).some((name) => /^ids(\[|$)/.test(name)))
      throw invalid('ids', 'is not supported: read each file at /v1/files/{file_id}');
    setIgnoredQuery(req, res, isAnthropic ? anthropicFields : openAiFields);
    const { order, isReversed } = isAnthropic ? anthropicPage(req, res) : openAiPage(req, res);
    const purpose: FilePurpose | null = queryOf(req, 'purpose', uploadPurposeQuery) ?? null;
    const { files, hasMore } = await primary.call('files', { order, purpose });
    const page = isReversed ? files.toReversed() : files;
    const next = hasMore && !isReversed ? (page.at(-1)?.id ?? null) : null;
    const form = isAnthropic ? { next_page: next } : { object: 'list' };
    sendJson(res, { ...form, ...pageBody(page, hasMore, (file) => bodyOf(req, file)) });
  };
}

export function getFile(primary: Primary): AsyncHandler {
  return async (req, res) => sendJson(res, bodyOf(req, await primary.call('file', fileKey(req, res))));
}

/** Sends a file as a download: a browser must not show the HTML of a client as a page of this service. */
export function getFileContent(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const key = fileKey(req, res);
    const { bytes } = await primary.call('file', key);
    await sendFile(primary, res, { ...key, bytes }, 'application/octet-stream');
  };
}

export function deleteFile(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const key = fileKey(req, res);
    await primary.call('deleteFile', key);
    if (speaksAnthropic(req)) sendJson(res, { id: key.id, type: 'file_deleted' });
    else sendJson(res, { id: key.id, object: 'file', deleted: true });
  };
}

function fileKey({ params }: Request, { locals }: Reply) {
  return { id: String(params.file_id), client: locals.client };
}

function bodyOf(req: Request, { id, name, bytes, mediaType, purpose, createdAt, expiresAt }: FileView): object {
  if (speaksAnthropic(req)) {
    const size = { filename: name, mime_type: mediaType, size_bytes: bytes, downloadable: true };
    return { id, type: 'file', ...size, created_at: timestamp(createdAt), expires_at: timestamp(expiresAt) };
  }
  const times = { created_at: seconds(createdAt), expires_at: seconds(expiresAt) };
  return { id, object: 'file', bytes, ...times, filename: name, purpose, status: 'processed' };
}
