import type { Request } from 'express';
import { idQuery } from '../../shared/api/files.js';
import { timestamp } from '../../shared/clock.js';
import { invalid } from '../../shared/errors.js';
import { queryOf } from '../../worker/http/body.js';
import type { Reply } from '../../worker/http/exchange.js';
import { type FileBodies, pageLimitIn, type RequestedPage } from './pages.js';

/** Parameters of a list of Anthropic's API. */
export const anthropicFields: ReadonlySet<string> = new Set([
  'limit',
  'after_id',
  'before_id',
  'page',
  'purpose',
  'beta',
]);

/** Reads the query of a list of Anthropic's API, which begins with the newest entry. `page`: an earlier `next_page`. */
export function anthropicPage(req: Request, res: Reply): RequestedPage {
  const { client } = res.locals;
  const limit = pageLimitIn(req);
  const after = queryOf(req, 'after_id', idQuery) ?? queryOf(req, 'page', idQuery) ?? null;
  const before = queryOf(req, 'before_id', idQuery) ?? null;
  if (after !== null && before !== null) throw invalid('before_id', 'cannot be sent together with after_id or page');
  const isReversed = before !== null;
  return { order: { client, after: after ?? before, limit, isAscending: isReversed }, isReversed };
}

export const anthropicFiles: FileBodies = {
  usualPurpose: 'user_data',
  listFields: anthropicFields,
  pageIn: anthropicPage,
  listFieldsOf: (next) => ({ next_page: next }),
  file: ({ id, name, bytes, mediaType, createdAt, expiresAt }) => {
    const size = { filename: name, mime_type: mediaType, size_bytes: bytes, downloadable: true };
    return { id, type: 'file', ...size, created_at: timestamp(createdAt), expires_at: timestamp(expiresAt) };
  },
  deleted: (id) => ({ id, type: 'file_deleted' }),
};
