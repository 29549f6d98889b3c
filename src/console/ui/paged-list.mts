import type { ComponentChildren } from 'preact';
import type { ListPages, ListView, Paged } from '../base/list-pages.mjs';
import { hrefOf } from '../base/router.mjs';
import { html } from './html.mjs';
import { ErrorNotice } from './notices.mjs';

/** A list that is read page after page, with the one that is open beside it. */
export interface ShownList<Page extends Paged, Item> {
  readonly pages: ListPages<Page, Item>;
  readonly view: ListView<Item>;
  readonly openId: string | undefined;
}

interface PagedListProps<Page extends Paged, Item> extends ShownList<Page, Item> {
  /** Of the console: what is listed is opened there. */
  readonly page: string;
  /** What is listed, for screen readers. */
  readonly label: string;
  readonly entry: (item: Item) => ComponentChildren;
  /** Stands in the place of a list of none. */
  readonly none: ComponentChildren;
}

/** Links to what is listed, as far as was asked for. */
export function PagedList<Page extends Paged, Item>(props: PagedListProps<Page, Item>) {
  const { pages, view, openId, page, label, entry, none } = props;
  const { items, next, state } = view;
  if (items?.length === 0 && state === 'ready') return none;
  const link = (id: string, item: Item) => html`<li key=${id}>
    <a href=${hrefOf(page, { id })} aria-current=${id === openId ? 'true' : undefined}>${entry(item)}</a>
  </li>`;
  return html`<nav class="talks" aria-label=${label}>
    <ul>
      ${items?.map((item) => link(pages.listing.idOf(item), item))}
    </ul>
    ${state === 'reading' && html`<p class="muted row"><span class="spinner" />Reading</p>`}
    ${typeof state === 'object' && html`<${ErrorNotice} error=${state.failure} onRetry=${() => void pages.readAgain()} />`}
    ${next !== null && state === 'ready' && html`<button type="button" class="button" onClick=${() => void pages.readMore()}>Show more</button>`}
  </nav>`;
}
