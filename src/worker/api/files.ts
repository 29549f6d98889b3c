import type { Request } from 'express';
import { uploadPurposeQuery } from '../../shared/api/files.js';
import { invalid } from '../../shared/errors.js';
import type { FilePurpose } from '../../shared/files.js';
import type { Door } from '../features/feature.js';
import { sendFile } from '../files/content.js';
import { pageBody } from '../files/pages.js';
import { receiveFile } from '../files/upload.js';
import { queryOf } from '../http/body.js';
import type { AsyncHandler, Primary, Reply } from '../http/exchange.js';
import { sendJson } from '../http/responses.js';
import { setIgnoredQuery } from '../jobs/job-request.js';
import type { JobParts } from '../jobs/run-job.js';
import { formFor } from './doors.js';

/** Files for SDKs. Each API has other bodies at the same paths. */

export function postFile({ primary, bodies }: JobParts, doors: readonly Door[]): AsyncHandler {
  return async (req, res) => {
    const { usualPurpose, file: bodyOf } = formFor(req, doors, 'files');
    const { file, unknown } = await receiveFile(primary, req, res, bodies.pace, usualPurpose);
    setIgnoredQuery({ query: Object.fromEntries(unknown.map((name) => [name, true])) }, res, new Set());
    sendJson(res, bodyOf(file));
  };
}

export function getFiles(primary: Primary, doors: readonly Door[]): AsyncHandler {
  return async (req, res) => {
    const form = formFor(req, doors, 'files');
    if (Object.keys(req.query).some((name) => /^ids(\[|$)/.test(name)))
      throw invalid('ids', 'is not supported: read each file at /v1/files/{file_id}');
    setIgnoredQuery(req, res, form.listFields);
    const { order, isReversed } = form.pageIn(req, res);
    const purpose: FilePurpose | null = queryOf(req, 'purpose', uploadPurposeQuery) ?? null;
    const { files, hasMore } = await primary.call('files', { order, purpose });
    const page = isReversed ? files.toReversed() : files;
    const next = hasMore && !isReversed ? (page.at(-1)?.id ?? null) : null;
    sendJson(res, { ...form.listFieldsOf(next), ...pageBody(page, hasMore, form.file) });
  };
}

export function getFile(primary: Primary, doors: readonly Door[]): AsyncHandler {
  return async (req, res) => {
    const file = await primary.call('file', fileKey(req, res));
    sendJson(res, formFor(req, doors, 'files').file(file));
  };
}

/** Sends a file as a download: a browser must not show the HTML of a client as a page of this service. */
export function getFileContent(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const key = fileKey(req, res);
    const { bytes } = await primary.call('file', key);
    await sendFile(primary, res, { ...key, bytes }, 'application/octet-stream');
  };
}

export function deleteFile(primary: Primary, doors: readonly Door[]): AsyncHandler {
  return async (req, res) => {
    const key = fileKey(req, res);
    await primary.call('deleteFile', key);
    sendJson(res, formFor(req, doors, 'files').deleted(key.id));
  };
}

function fileKey({ params }: Request, { locals }: Reply) {
  return { id: String(params.file_id), client: locals.client };
}
