import type { Request } from 'express';
import { uploadPurposeQuery } from '../../shared/api/files.js';
import { invalid } from '../../shared/errors.js';
import type { FilePurpose } from '../../shared/files.js';
import { belowV1 } from '../../worker/api/doors.js';
import type { Door, FeatureRoute, WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { queryOf } from '../../worker/http/body.js';
import type { AsyncHandler, Reply } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import { setIgnoredQuery } from '../../worker/jobs/job-request.js';
import { anthropicFiles } from './anthropic-form.js';
import { sendFile } from './content.js';
import { openAiFiles } from './openai-form.js';
import { type FileBodies, pageBody } from './pages.js';
import { FileReader } from './references.js';
import type { calls, FileCalls } from './shared.js';
import { receiveFile } from './upload.js';

/** Files for SDKs, at the same paths in each API. The errors have the form of the API that a request is for. */

const door: Door = {
  errorFormOf: () => null,
  findPath: (path) => {
    const below = belowV1(path);
    return /^files(?:\/|$)/.test(below) ? `/v1/${below}` : null;
  },
};

export function createPart({ primary, guards, jobs }: WorkerCore<typeof calls>): WorkerPart {
  const { mayAsk, needsService, namesUser, capped, once } = guards;
  const mayCall = [guards.mayCall, namesUser];
  const { bodies } = jobs;
  const reader = new FileReader(primary, bodies.limitBytes);
  const routes: readonly FeatureRoute[] = [
    {
      route: '/v1/files',
      get: [...mayCall, getFiles(primary)],
      post: [mayAsk, needsService, namesUser, capped, once, postFile(primary, bodies)],
    },
    {
      route: '/v1/files/{file_id}',
      get: [...mayCall, getFile(primary)],
      delete: [...mayCall, deleteFile(primary)],
    },
    { route: '/v1/files/{file_id}/content', get: [...mayCall, getFileContent(primary)] },
  ];
  return { routes, door, readFiles: (found, sender) => reader.read(found, sender) };
}

/** Returns the bodies in the API that a request is for. Only clients of Anthropic's API name a version of it. */
function bodiesFor({ headers }: Request): FileBodies {
  return headers['anthropic-version'] === undefined ? openAiFiles : anthropicFiles;
}

function postFile(primary: FileCalls, { pace }: WorkerCore['jobs']['bodies']): AsyncHandler {
  return async (req, res) => {
    const { usualPurpose, file: bodyOf } = bodiesFor(req);
    const { file, unknown } = await receiveFile(primary, req, res, pace, usualPurpose);
    setIgnoredQuery({ query: Object.fromEntries(unknown.map((name) => [name, true])) }, res, new Set());
    sendJson(res, bodyOf(file));
  };
}

function getFiles(primary: FileCalls): AsyncHandler {
  return async (req, res) => {
    const form = bodiesFor(req);
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

function getFile(primary: FileCalls): AsyncHandler {
  return async (req, res) => {
    const file = await primary.call('file', fileKey(req, res));
    sendJson(res, bodiesFor(req).file(file));
  };
}

/** Sends a file as a download: a browser must not show the HTML of a client as a page of this service. */
function getFileContent(primary: FileCalls): AsyncHandler {
  return async (req, res) => {
    const key = fileKey(req, res);
    const { bytes } = await primary.call('file', key);
    await sendFile(primary, res, { ...key, bytes }, 'application/octet-stream');
  };
}

function deleteFile(primary: FileCalls): AsyncHandler {
  return async (req, res) => {
    const key = fileKey(req, res);
    await primary.call('deleteFile', key);
    sendJson(res, bodiesFor(req).deleted(key.id));
  };
}

function fileKey({ params }: Request, { locals }: Reply) {
  return { id: String(params.file_id), client: locals.client };
}
