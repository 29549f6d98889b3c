import { html } from 'htm/preact';
import { type FunctionComponent, type RefObject, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { VersionBody } from '../shared/api/version.js';
import { Api } from './base/api.mjs';
import { KeyKeeper, Link } from './base/connection.mjs';
import { ConsoleContext, type ConsoleParts, useLoad, useParts } from './base/context.mjs';
import { asError } from './base/failures.mjs';
import { keepFocus } from './base/focus.mjs';
import { useValue } from './base/observable.mjs';
import { browserClock } from './base/page-clock.mjs';
import { hrefOf, type PageProps, placeOf, usePlace } from './base/router.mjs';
import { TabMemory } from './base/tab-memory.mjs';
import { Theme, themes } from './base/theme.mjs';
import { hasNoKeys, KeyDialog, useCaller, Who } from './ui/caller.mjs';
import { EmptyState, ErrorNotice } from './ui/notices.mjs';

/** Resolved relative to this file, because the name of its folder changes with each version. */
const icon = new URL('icon.svg', import.meta.url).href;

/** Shows the whole console: header, footer and the page that the address names. */
export function App() {
  const { page, params, before } = usePlace();
  const current = pageAt(page);
  const main = useRef<HTMLElement>(null);
  const visited = useVisited(current);
  const askAddress = useRef(hrefOf(pages[0].id));
  if (!current.staysDrawn && placeOf(before).page === pages[0].id) askAddress.current = before;
  useEffect(() => {
    if (current.staysDrawn) return;
    document.title = `${current.title} · prompt-relay`;
    if (before !== '') scrollTo(0, 0); // the page before may have been scrolled
  }, [current]);
  const shown = visited.filter((entry) => entry === current || entry.staysDrawn);
  return html`
    <${Header} current=${current} main=${main} askAddress=${askAddress.current} />
    <main id="main" ref=${main} tabindex="-1" aria-label=${current.title}>
      ${shown.map(
        (entry) => html`<div class="page" key=${entry.id} hidden=${entry !== current}>
          <${PageOf} entry=${entry} params=${entry === current ? params : undefined} />
        </div>`,
      )}
    </main>
    <${Footer} />
    <${KeyDialog} />
  `;
}

/** Returns the page of an address: the first one for an empty address. */
function pageAt(address: string): PageEntry {
  if (address === '' || address === 'conversations') return pages[0]; // an earlier version had that page
  return [...pages, ...others].find(({ id, title }) => id === address || title.toLowerCase() === address) ?? noPage;
}

function useVisited(current: PageEntry): readonly PageEntry[] {
  const [visited, setVisited] = useState<readonly PageEntry[]>([current]);
  if (visited.includes(current)) return visited;
  const all = [...visited, current];
  setVisited(all);
  return all;
}

interface HeaderProps {
  readonly current: PageEntry;
  readonly main: RefObject<HTMLElement | null>;
  /** Address of the conversation that was shown last. */
  readonly askAddress: string;
}

function Header({ current, main, askAddress }: HeaderProps) {
  const caller = useCaller();
  const linked = pages.filter(({ id }) => id !== 'keys' || !hasNoKeys(caller));
  const skip = (event: Event) => {
    event.preventDefault(); // the hash names the page, so it must not change
    main.current?.focus();
  };
  return html`<header class="top">
    <a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <div class="bar">
      <a class="brand" href=${hrefOf(pages[0].id)}><img src=${icon} alt="" width="22" height="22" />prompt-relay</a>
      <nav aria-label="Pages">
        ${linked.map(
          ({ id, title }) =>
            html`<a href=${id === current.id || id !== pages[0].id ? hrefOf(id) : askAddress} aria-current=${id === current.id ? 'page' : undefined}>${title}</a>`,
        )}
      </nav>
      <${Who} caller=${caller} />
    </div>
    <${GoneBanner} />
  </header>`;
}

type PageCode =
  | { readonly state: 'reading' }
  | { readonly state: 'here'; readonly component: FunctionComponent<PageProps> }
  | { readonly state: 'missing'; readonly error: Error };

/** Shows a page. A hidden page has the parameters of its last visit. */
function PageOf({ entry, params }: { readonly entry: PageEntry; readonly params?: PageProps['params'] }) {
  const lastParams = useRef<PageProps['params']>({});
  if (params !== undefined) lastParams.current = params;
  const [code, setCode] = useState<PageCode>({ state: 'reading' });
  const read = () => {
    entry.load().then(
      (component) => setCode({ state: 'here', component }),
      (error: unknown) => setCode({ state: 'missing', error: asError(error) }),
    );
  };
  useEffect(read, [entry]);
  if (code.state === 'missing') return html`<${ErrorNotice} error=${code.error} onRetry=${() => location.reload()} />`;
  return code.state === 'here' ? html`<${code.component} params=${lastParams.current} />` : null;
}

interface PageEntry {
  readonly id: string;
  readonly title: string;
  /** Loads the code of the page when it is first shown. */
  readonly load: () => Promise<FunctionComponent<PageProps>>;
  /**
   * Whether the page is only hidden while another page is shown, because an answer may still arrive on it. Such a page
   * sets the title of the browser tab itself.
   */
  readonly staysDrawn?: boolean;
}

/** All pages in the order of the navigation. The first one is the default. */
export const pages: readonly [PageEntry, ...PageEntry[]] = [
  { id: 'ask', title: 'Ask', load: async () => (await import('./ask/page.mjs')).AskPage, staysDrawn: true },
  { id: 'now', title: 'Now', load: async () => (await import('./now/page.mjs')).NowPage },
  { id: 'usage', title: 'Usage', load: async () => (await import('./usage/page.mjs')).UsagePage },
  { id: 'jobs', title: 'Jobs', load: async () => (await import('./jobs/page.mjs')).JobsPage },
  { id: 'keys', title: 'Keys', load: async () => (await import('./keys/page.mjs')).KeysPage },
  { id: 'setup', title: 'Set-up', load: async () => (await import('./setup/page.mjs')).SetupPage },
];

/** Pages that are not in the navigation; other pages link to them. */
const others: readonly PageEntry[] = [
  { id: 'docs', title: 'Documents', load: async () => (await import('./setup/documents.mjs')).DocumentPage },
  { id: 'data', title: 'Your data', load: async () => (await import('./data/page.mjs')).DataPage },
  { id: 'course', title: 'Course', load: async () => (await import('./courses/page.mjs')).CoursePage },
];

const noPage: PageEntry = { id: 'none', title: 'No such page', load: async () => NoPage };

function NoPage() {
  return html`<${EmptyState} title="This page does not exist" level="h1">
    <p>The address has a name that no page has. <a href=${hrefOf(pages[0].id)}>Ask the model</a>, or choose a page above.</p>
  <//>`;
}

/** Shows the version of the service, and links to its documents and its API. */
function Footer() {
  const [version] = useLoad<VersionBody>('/version');
  const nameOf = ({ version, model_cli: cli }: VersionBody) =>
    `prompt-relay ${version} · ${[cli.adapter, cli.version].filter(Boolean).join(' ')}`;
  return html`<footer class="bottom">
    ${version.state === 'ready' && html`<span>${nameOf(version.value)}</span>`}
    <a href=${hrefOf('docs')}>Documents</a>
    <a href=${hrefOf('data')}>Your data</a>
    <a href="../docs/">API</a>
    <${ThemeChoice} />
  </footer>`;
}

/** Select for the colours of all pages, which the browser stores. */
function ThemeChoice() {
  const { theme } = useParts();
  const choice = useValue(theme.choice);
  const choose = ({ currentTarget }: { currentTarget: HTMLSelectElement }) => theme.choose(currentTarget.value);
  return html`<label>Colours
    <select class="link" value=${choice} onChange=${choose}>
      ${themes.map((name) => html`<option value=${name}>${name}</option>`)}
    </select>
  </label>`;
}

/** Notice in the header, visible at any scroll position, while the server does not answer. */
function GoneBanner() {
  const { link } = useParts();
  const isGone = useValue(link.state) === 'gone';
  return html`<div class="gone" role="status">
    ${isGone && html`<p><span class="spinner" />Connection lost. Reconnecting …</p>`}
  </div>`;
}

function consoleParts(): ConsoleParts {
  const keys = new KeyKeeper(sessionStorage);
  const isThere = () =>
    fetch('../version', { cache: 'no-store' }).then(
      ({ status }) => status < 502,
      () => false,
    );
  const link = new Link(isThere, browserClock);
  const api = new Api((...request) => fetch(...request), keys, link);
  return {
    api,
    keys,
    link,
    clock: browserClock,
    memory: new TabMemory(sessionStorage),
    theme: new Theme(localStorage),
  };
}

const root = document.getElementById('console');
if (root !== null) {
  root.replaceChildren(); // removes the text for browsers without JavaScript
  keepFocus();
  render(html`<${ConsoleContext.Provider} value=${consoleParts()}><${App} /><//>`, root);
}
