import type { Request } from 'express';
import { idQuery, orderQuery, pageLimit } from '../../shared/api/files.js';
import { invalid } from '../../shared/errors.js';
import type { PageOrder } from '../../shared/files.js';
import { queryOf } from '../http/body.js';
import type { Reply } from '../http/exchange.js';

const usualPage = 20;
const maxPage = 1000;

/** Returns seconds since the epoch. */
export function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Page in the order in which it is read, and whether its entries are in the reverse order of the body. */
export interface RequestedPage {
  readonly order: PageOrder;
  readonly isReversed: boolean;
}

/** Parameters of a list of OpenAI's API. */
export const openAiFields: ReadonlySet<string> = new Set(['limit', 'order', 'after', 'purpose']);

/** Reads the query of a list of OpenAI's API. */
export function openAiPage(req: Request, res: Reply): RequestedPage {
  const { client } = res.locals;
  const limit = Math.min(Number(queryOf(req, 'limit', pageLimit) ?? usualPage), maxPage);
  const isAscending = queryOf(req, 'order', orderQuery) === 'asc';
  const after = queryOf(req, 'after', idQuery) ?? null;
  return { order: { client, after, limit, isAscending }, isReversed: false };
}

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
  const limit = Math.min(Number(queryOf(req, 'limit', pageLimit) ?? usualPage), maxPage);
  const after = queryOf(req, 'after_id', idQuery) ?? queryOf(req, 'page', idQuery) ?? null;
  const before = queryOf(req, 'before_id', idQuery) ?? null;
  if (after !== null && before !== null) throw invalid('before_id', 'cannot be sent together with after_id or page');
  const isReversed = before !== null;
  return { order: { client, after: after ?? before, limit, isAscending: isReversed }, isReversed };
}

/** Returns the fields of a page that both APIs have. */
export function pageBody<T extends { readonly id: string }>(
  entries: readonly T[],
  hasMore: boolean,
  bodyOf: (entry: T) => object,
): object {
  const ids = { first_id: entries[0]?.id ?? null, last_id: entries.at(-1)?.id ?? null };
  return { data: entries.map(bodyOf), has_more: hasMore, ...ids };
}

/** Returns the id in the path, and the client. */
export function batchKey({ params }: Request, { locals }: Reply) {
  return { id: String(params.batch_id), client: locals.client };
}
