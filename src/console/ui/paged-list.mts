import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Api } from '../base/api.mjs';
import { asError, ServerGone } from '../base/failures.mjs';
import { Observable } from '../base/observable.mjs';
import { ErrorNotice } from './notices.mjs';

/** Items read so far, and the state of the last request. */
export interface ListView<Item> {
  /** Items; null before the first page is read. */
  readonly items: readonly Item[] | null;
  /** Cursor of the next page; null at the end. */
  readonly next: string | null;
  readonly state: 'reading' | 'ready' | { readonly failure: Error };
}

/** Page of a list in the API. */
export interface Paged {
  /** Cursor of the next page; null on the last one. */
  readonly next_cursor: string | null;
}

/** Description of a list in the API: its path and the format of its pages. */
export interface Listing<Page, Item> {
  /** Path in the API, such as `/jobs`. */
  readonly path: string;
  /** Further parameters of the query. */
  readonly query?: Readonly<Record<string, string>>;
  itemsOf(page: Page): readonly Item[];
  idOf(item: Item): string;
  /** Returns the text by which the list is sorted, greatest first. An item moves only to the beginning. */
  orderOf(item: Item): string;
  /** Whether a 401 opens the key dialog (default). If false, the list stays empty. */
  readonly asksForKey?: false;
}

const pageSize = 30;

/** Reads a list of the API page by page. */
export class ListPages<Page extends Paged, Item> {
  readonly view = new Observable<ListView<Item>>({ items: null, next: null, state: 'reading' });
  readonly listing: Listing<Page, Item>;
  readonly #api: Pick<Api, 'json'>;
  #rounds = 0;
  /** Cursor of the last request; null for the first page. */
  #requestedCursor: string | null = null;
  #search = '';
  /** Request for a page. Another one replaces it. */
  #request = new AbortController();

  constructor(api: Pick<Api, 'json'>, listing: Listing<Page, Item>) {
    this.#api = api;
    this.listing = listing;
  }

  /** Reads the first page again. Later pages are unchanged. */
  async readFirst(): Promise<void> {
    await this.#read(null);
  }

  /** Words that items must contain; empty for no filter. */
  get search(): string {
    return this.#search;
  }

  async find(search: string): Promise<void> {
    this.#search = search;
    this.view.set({ ...this.view.value, items: null, next: null });
    await this.#read(null);
  }

  async readMore(): Promise<void> {
    const { next, state } = this.view.value;
    if (next !== null && state !== 'reading') await this.#read(next);
  }

  /** Repeats the request that failed. */
  async readAgain(): Promise<void> {
    await this.#read(this.#requestedCursor);
  }

  /** Replaces an item by a newer version. */
  replace(item: Item): void {
    const { idOf } = this.listing;
    const items = this.view.value.items?.map((other) => (idOf(other) === idOf(item) ? item : other)) ?? null;
    this.view.set({ ...this.view.value, items });
  }

  forget(id: string): void {
    const items = this.view.value.items?.filter((item) => this.listing.idOf(item) !== id) ?? null;
    this.view.set({ ...this.view.value, items });
  }

  /** Reads a page. Cancels the request before, so that the service does not search for words that nobody waits for. */
  async #read(cursor: string | null): Promise<void> {
    const round = ++this.#rounds;
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    this.#requestedCursor = cursor;
    if (this.view.value.items === null || cursor !== null) this.view.set({ ...this.view.value, state: 'reading' });
    const { path, query: fixed, asksForKey = true } = this.listing;
    const query = new URLSearchParams({
      ...fixed,
      limit: String(pageSize),
      ...(cursor !== null && { cursor }),
      ...(this.#search !== '' && { search: this.#search }),
    });
    try {
      const page = await this.#api.json<Page>(`${path}?${query}`, { asksForKey, signal });
      if (round === this.#rounds) this.view.set(this.#with(page, cursor === null));
    } catch (error) {
      if (round === this.#rounds) this.view.set({ ...this.view.value, state: { failure: asError(error) } });
    }
  }

  /**
   * Merges a page into the list. An item that was active between two requests can be on both pages, but is listed once.
   */
  #with(answer: Page, isFirst: boolean): ListView<Item> {
    const { itemsOf, idOf, orderOf } = this.listing;
    const { items: known, next: before } = this.view.value;
    const page = itemsOf(answer);
    const { next_cursor: next } = answer;
    const named = new Set(page.map(idOf));
    const otherItems = (known ?? []).filter((item) => !named.has(idOf(item)));
    if (!isFirst) return { items: [...otherItems, ...page], next, state: 'ready' };
    const last = page.at(-1);
    const isAfter = (item: Item) => last !== undefined && orderOf(item) <= orderOf(last);
    const after = next === null ? [] : otherItems.filter(isAfter);
    return { items: [...page, ...after], next: after.length === 0 ? next : before, state: 'ready' };
  }
}

/** List, and the item that is open beside it. */
export interface ShownList<Page extends Paged, Item> {
  readonly pages: ListPages<Page, Item>;
  readonly view: ListView<Item>;
  readonly openId: string | undefined;
}

interface PagedListProps<Page extends Paged, Item> extends ShownList<Page, Item> {
  /** Returns the address of an item in the console. */
  readonly href: (id: string, item: Item) => string;
  /** Accessible name of the list. */
  readonly label: string;
  /** Draws an item. `link` puts content into the link to the item. */
  readonly entry: (item: Item, link: (content: ComponentChildren) => ComponentChildren) => ComponentChildren;
  /** Returns the heading above an item and those after it. Without it, the list has no headings. */
  readonly groupOf?: (item: Item) => string;
  /** Content above the items that the service lists. */
  readonly first?: ComponentChildren;
  /** Content that replaces an empty list. */
  readonly none: ComponentChildren;
}

/**
 * Shows links to the items read so far; reads the next page when their end comes near the view. Shows no error while
 * the service does not answer: the header does.
 */
export function PagedList<Page extends Paged, Item>(props: PagedListProps<Page, Item>) {
  const { pages, view, openId, href, label, entry, groupOf, first = null, none } = props;
  const { items, next, state } = view;
  if (items?.length === 0 && next === null && state === 'ready' && first === null) return none;
  const linkTo = (id: string, item: Item) => (content: ComponentChildren) =>
    html`<a href=${href(id, item)} aria-current=${id === openId ? 'true' : undefined}>${content}</a>`;
  const row = (id: string, item: Item) => html`<li key=${id}>${entry(item, linkTo(id, item))}</li>`;
  const rows = (group: readonly Item[]) => html`<ul>${group.map((item) => row(pages.listing.idOf(item), item))}</ul>`;
  return html`<nav class="talks" aria-label=${label}>
    ${first}
    ${groupOf === undefined ? rows(items ?? []) : groupsOf(items ?? [], groupOf).map(([name, group]) => html`<section key=${name} aria-label=${name}><h2>${name}</h2>${rows(group)}</section>`)}
    ${state === 'reading' && html`<p class="muted row"><span class="spinner" />Reading</p>`}
    ${typeof state === 'object' && !(state.failure instanceof ServerGone) && html`<${ErrorNotice} error=${state.failure} onRetry=${() => void pages.readAgain()} />`}
    ${next !== null && state === 'ready' && html`<${More} onReached=${() => void pages.readMore()} />`}
  </nav>`;
}

/** Groups items by their heading, in the order of the list. */
function groupsOf<Item>(items: readonly Item[], groupOf: (item: Item) => string): [string, Item[]][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const name = groupOf(item);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [item]);
    else group.push(item);
  }
  return [...groups];
}

/** Calls `onReached` when it comes near the view. For users who do not scroll, it is a button. */
function More({ onReached }: { readonly onReached: () => void }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const near = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && onReached(), {
      rootMargin: '300px',
    });
    if (button.current !== null) near.observe(button.current);
    return () => near.disconnect();
  }, []);
  return html`<button ref=${button} type="button" class="button quiet" onClick=${onReached}>Show more</button>`;
}
