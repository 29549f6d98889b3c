import type { Request } from 'express';
import { idQuery, orderQuery } from '../../shared/api/files.js';
import { queryOf } from '../../worker/http/body.js';
import type { Reply } from '../../worker/http/exchange.js';
import { type FileBodies, pageLimitIn, type RequestedPage, seconds } from './pages.js';

/** Parameters of a list of OpenAI's API. */
export const openAiFields: ReadonlySet<string> = new Set(['limit', 'order', 'after', 'purpose']);

/** Reads the query of a list of OpenAI's API. */
export function openAiPage(req: Request, res: Reply): RequestedPage {
  const { client } = res.locals;
  const limit = pageLimitIn(req);
  const isAscending = queryOf(req, 'order', orderQuery) === 'asc';
  const after = queryOf(req, 'after', idQuery) ?? null;
  return { order: { client, after, limit, isAscending }, isReversed: false };
}

export const openAiFiles: FileBodies = {
  usualPurpose: null,
  listFields: openAiFields,
  pageIn: openAiPage,
  listFieldsOf: () => ({ object: 'list' }),
  file: ({ id, name, bytes, purpose, createdAt, expiresAt }) => {
    const times = { created_at: seconds(createdAt), expires_at: seconds(expiresAt) };
    return { id, object: 'file', bytes, ...times, filename: name, purpose, status: 'processed' };
  },
  deleted: (id) => ({ id, object: 'file', deleted: true }),
};
