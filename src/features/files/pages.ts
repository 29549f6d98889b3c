import type { Request } from 'express';
import { pageLimit } from '../../shared/api/files.js';
import type { FilePurpose, FileView, PageOrder } from '../../shared/files.js';
import { queryOf } from '../../worker/http/body.js';
import type { Reply } from '../../worker/http/exchange.js';

const usualPage = 20;
const maxPage = 1000;

/** Bodies about files, and the queries of their lists, in one API. */
export interface FileBodies {
  /** Purpose of an upload that names none; null if it must name one. */
  readonly usualPurpose: FilePurpose | null;
  /** Parameters of a list. */
  readonly listFields: ReadonlySet<string>;
  pageIn(req: Request, res: Reply): RequestedPage;
  /** Returns the fields of a list in addition to those of a page. `next`: the last id of a page that has a next one. */
  listFieldsOf(next: string | null): object;
  file(file: FileView): object;
  deleted(id: string): object;
}

/** Returns seconds since the epoch. */
export function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Page in the order in which it is read, and whether its entries are in the reverse order of the body. */
export interface RequestedPage {
  readonly order: PageOrder;
  readonly isReversed: boolean;
}

/** Returns the number of entries that a list may have. */
export function pageLimitIn(req: Request): number {
  return Math.min(Number(queryOf(req, 'limit', pageLimit) ?? usualPage), maxPage);
}

/** Returns the fields of a page that the APIs share. */
export function pageBody<T extends { readonly id: string }>(
  entries: readonly T[],
  hasMore: boolean,
  bodyOf: (entry: T) => object,
): object {
  const ids = { first_id: entries[0]?.id ?? null, last_id: entries.at(-1)?.id ?? null };
  return { data: entries.map(bodyOf), has_more: hasMore, ...ids };
}
