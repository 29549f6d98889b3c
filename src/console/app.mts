import type { FunctionComponent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { asError } from './failures.mjs';
import { Footer } from './footer.mjs';
import { GoneBanner } from './gone-banner.mjs';
import { KeyDialog } from './key-dialog.mjs';
import { type PageEntry, type PageProps, pages } from './pages.mjs';
import { hrefOf, usePlace } from './router.mjs';
import { ErrorNotice } from './ui/error-notice.mjs';
import { html } from './ui/html.mjs';

/** Beside this file: its folder has another name in each version. */
const icon = new URL('icon.svg', import.meta.url).href;

/** The whole console: what stands around the pages, and the page of the address. */
export function App() {
  const { page, params } = usePlace();
  const current = pages.find(({ id }) => id === page) ?? pages[0];
  const main = useRef<HTMLElement>(null);
  const visited = useVisited(current);
  useEffect(() => {
    document.title = `${current.title} · prompt-relay`;
  }, [current]);
  const shown = visited.filter((entry) => entry === current || entry.isKept);
  return html`
    <${Header} current=${current} onSkip=${() => main.current?.focus()} />
    <${GoneBanner} />
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

function useVisited(current: PageEntry): readonly PageEntry[] {
  const [visited, setVisited] = useState<readonly PageEntry[]>([current]);
  if (visited.includes(current)) return visited;
  const all = [...visited, current];
  setVisited(all);
  return all;
}

function Header({ current, onSkip }: { readonly current: PageEntry; readonly onSkip: () => void }) {
  const skip = (event: Event) => {
    event.preventDefault(); // the part after # names the page
    onSkip();
  };
  return html`<header class="top">
    <a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <a class="brand" href=${hrefOf(pages[0].id)}><img src=${icon} alt="" width="22" height="22" />prompt-relay</a>
    <nav aria-label="Pages">
      ${pages.map(
        ({ id, title }) =>
          html`<a href=${hrefOf(id)} aria-current=${id === current.id ? 'page' : undefined}>${title}</a>`,
      )}
    </nav>
  </header>`;
}

type PageCode =
  | { readonly state: 'reading' }
  | { readonly state: 'here'; readonly component: FunctionComponent<PageProps> }
  | { readonly state: 'missing'; readonly error: Error };

/** A page that is hidden keeps what it was told last. */
function PageOf({ entry, params }: { readonly entry: PageEntry; readonly params?: PageProps['params'] }) {
  const told = useRef<PageProps['params']>({});
  if (params !== undefined) told.current = params;
  const [code, setCode] = useState<PageCode>({ state: 'reading' });
  const read = () => {
    entry.load().then(
      (component) => setCode({ state: 'here', component }),
      (error: unknown) => setCode({ state: 'missing', error: asError(error) }),
    );
  };
  useEffect(read, [entry]);
  if (code.state === 'missing') return html`<${ErrorNotice} error=${code.error} onRetry=${() => location.reload()} />`;
  return code.state === 'here' ? html`<${code.component} params=${told.current} />` : null;
}
