import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Api } from '../base/api.mjs';
import { asError, ServerGone } from '../base/failures.mjs';
import { Observable } from '../base/observable.mjs';
import { ErrorNotice } from './notices.mjs';

/** The pages read so far. */
export interface ListView<Item> {
  /** null before the first page is read. */
  readonly items: readonly Item[] | null;
  /** The cursor of the next page; null at the end. */
  readonly next: string | null;
  readonly state: 'reading' | 'ready' | { readonly failure: Error };
}

/** One page of a list in the API. */
export interface Paged {
  /** Of the next page; null on the last one. */
  readonly next_cursor: string | null;
}

/** A list of the API: its path and the form of its pages. */
export interface Listing<Page, Item> {
  /** `/jobs`, say. */
  readonly path: string;
  /** Further parameters of its query. */
  readonly query?: Readonly<Record<string, string>>;
  itemsOf(page: Page): readonly Item[];
  idOf(item: Item): string;
  /** The text that the list is sorted by, greatest first. An item moves only to the beginning. */
  orderOf(item: Item): string;
  /** false: without a key, the list stays empty, and the user is not asked for one. */
  readonly asksForKey?: false;
}

const pageSize = 30;

/** Owns a list of the API, page after page. */
export class ListPages<Page extends Paged, Item> {
  readonly view = new Observable<ListView<Item>>({ items: null, next: null, state: 'reading' });
  readonly listing: Listing<Page, Item>;
  readonly #api: Pick<Api, 'json'>;
  #rounds = 0;
  /** The cursor of the last request. */
  #asked: string | null = null;
  #search = '';

  constructor(api: Pick<Api, 'json'>, listing: Listing<Page, Item>) {
    this.#api = api;
    this.listing = listing;
  }

  /** Reads the first page again. Later pages stay. */
  async readFirst(): Promise<void> {
    await this.#read(null);
  }

  /** What a title has to contain; '' for all. */
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
    await this.#read(this.#asked);
  }

  /** An item that has changed, in the place of the one before. */
  replace(item: Item): void {
    const { idOf } = this.listing;
    const items = this.view.value.items?.map((other) => (idOf(other) === idOf(item) ? item : other)) ?? null;
    this.view.set({ ...this.view.value, items });
  }

  forget(id: string): void {
    const items = this.view.value.items?.filter((item) => this.listing.idOf(item) !== id) ?? null;
    this.view.set({ ...this.view.value, items });
  }

  /** Ignores the answer if another request has started since. */
  async #read(cursor: string | null): Promise<void> {
    const round = ++this.#rounds;
    this.#asked = cursor;
    if (this.view.value.items === null || cursor !== null) this.view.set({ ...this.view.value, state: 'reading' });
    const { path, query: fixed, asksForKey = true } = this.listing;
    const query = new URLSearchParams({
      ...fixed,
      limit: String(pageSize),
      ...(cursor !== null && { cursor }),
      ...(this.#search !== '' && { search: this.#search }),
    });
    try {
      const page = await this.#api.json<Page>(`${path}?${query}`, { asksForKey });
      if (round === this.#rounds) this.view.set(this.#with(page, cursor === null));
    } catch (error) {
      if (round === this.#rounds) this.view.set({ ...this.view.value, state: { failure: asError(error) } });
    }
  }

  /** Lists each item once: one that was active between two requests can be on both pages. */
  #with(answer: Page, isFirst: boolean): ListView<Item> {
    const { itemsOf, idOf, orderOf } = this.listing;
    const { items: known, next: before } = this.view.value;
    const page = itemsOf(answer);
    const { next_cursor: next } = answer;
    const named = new Set(page.map(idOf));
    const others = (known ?? []).filter((item) => !named.has(idOf(item)));
    if (!isFirst) return { items: [...others, ...page], next, state: 'ready' };
    const last = page.at(-1);
    const isAfter = (item: Item) => last !== undefined && orderOf(item) <= orderOf(last);
    const after = next === null ? [] : others.filter(isAfter);
    return { items: [...page, ...after], next: after.length === 0 ? next : before, state: 'ready' };
  }
}

/** A list, and the item that is open beside it. */
export interface ShownList<Page extends Paged, Item> {
  readonly pages: ListPages<Page, Item>;
  readonly view: ListView<Item>;
  readonly openId: string | undefined;
}

interface PagedListProps<Page extends Paged, Item> extends ShownList<Page, Item> {
  /** Where in the console an item is opened. */
  readonly href: (id: string) => string;
  /** For screen readers. */
  readonly label: string;
  /** `link` puts content into the link to the item. */
  readonly entry: (item: Item, link: (content: ComponentChildren) => ComponentChildren) => ComponentChildren;
  /** The heading above an item and those after it; none without it. */
  readonly groupOf?: (item: Item) => string;
  /** Above the items that the service lists. */
  readonly first?: ComponentChildren;
  /** Shown instead of an empty list. */
  readonly none: ComponentChildren;
}

/** Links to the items read so far; the next page is read at their end. While the service does not answer, the header says so. */
export function PagedList<Page extends Paged, Item>(props: PagedListProps<Page, Item>) {
  const { pages, view, openId, href, label, entry, groupOf, first = null, none } = props;
  const { items, next, state } = view;
  if (items?.length === 0 && next === null && state === 'ready' && first === null) return none;
  const linkTo = (id: string) => (content: ComponentChildren) =>
    html`<a href=${href(id)} aria-current=${id === openId ? 'true' : undefined}>${content}</a>`;
  const row = (id: string, item: Item) => html`<li key=${id}>${entry(item, linkTo(id))}</li>`;
  const rows = (group: readonly Item[]) => html`<ul>${group.map((item) => row(pages.listing.idOf(item), item))}</ul>`;
  return html`<nav class="talks" aria-label=${label}>
    ${first}
    ${groupOf === undefined ? rows(items ?? []) : groupsOf(items ?? [], groupOf).map(([name, group]) => html`<section key=${name} aria-label=${name}><h2>${name}</h2>${rows(group)}</section>`)}
    ${state === 'reading' && html`<p class="muted row"><span class="spinner" />Reading</p>`}
    ${typeof state === 'object' && !(state.failure instanceof ServerGone) && html`<${ErrorNotice} error=${state.failure} onRetry=${() => void pages.readAgain()} />`}
    ${next !== null && state === 'ready' && html`<${More} onReached=${() => void pages.readMore()} />`}
  </nav>`;
}

/** In their order: items of one group stand side by side. */
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

/** Calls once its place comes near the view; for readers who do not scroll, it is a button. */
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
