import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { AnswerText, useMarkdown } from '../ui/answer.mjs';

/** Returns the address in the console of a document or of a heading in it: `stores`, `stores#backup`. */
export function documentAddress(place: string): string {
  const [name = '', heading] = place.split('#', 2);
  return hrefOf('docs', heading === undefined ? { name } : { name, heading });
}

interface FactProps {
  readonly name: string;
  /** Document that explains the fact. */
  readonly page: string;
  readonly children: ComponentChildren;
}

/** Shows a line of a list, with a link to the document that explains it. */
export function Fact({ name, page, children }: FactProps) {
  return html`<div><dt><a href=${documentAddress(page)}>${name}</a></dt><dd>${children}</dd></div>`;
}

interface FactCardProps {
  readonly title: string;
  readonly children: ComponentChildren;
}

/** Shows a card with a list of facts. */
export function FactCard({ title, children }: FactCardProps) {
  return html`<section class="card" aria-label=${title}><h2>${title}</h2><dl class="facts">${children}</dl></section>`;
}

/** Begins the names of documents that are not in the folder `docs`. */
const outside = 'project/';
const outsidePages = ['README', 'CONTRIBUTING', 'CHANGELOG', 'SECURITY', 'bench/RESULTS'];

/** Returns the document to which a relative link leads, or null if the service serves none there. */
function documentAt(href: string, name: string): string | null {
  const base = name.startsWith(outside) ? `/${name.slice(outside.length)}.md` : `/docs/${name}.md`;
  const { pathname, hash } = new URL(href, new URL(base, location.origin));
  const [, page] = /^\/docs\/([\w-]+)\.md$/.exec(pathname) ?? [];
  if (page !== undefined) return page + hash;
  const other = outsidePages.find((one) => pathname === `/${one}.md`);
  return other === undefined ? null : outside + other + hash;
}

/** Rewrites the links of a document, so that they lead to the documents in the console. */
export function withConsoleLinks(text: string, name: string): string {
  return text
    .replace(/\]\((?!\w+:)([^)\s]+)\)/g, (link, href) => {
      const place = documentAt(href, name);
      return place === null ? link : `](${new URL(documentAddress(place), location.href).href})`;
    })
    .replace(/^ *<!--[\s\S]*?-->\n/gm, '')
    .replace(/^#(?=#+ )/gm, ''); // headings move up a level: the page shows the title itself
}

/** Returns the anchor of a heading, as links in the documents write it. */
export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

async function read(name: string): Promise<string> {
  const response = await fetch(`../docs/pages/${name.split('/').map(encodeURIComponent).join('/')}.md`).catch(
    () => null,
  );
  if (response?.ok) return await response.text();
  return response === null ? 'The service does not answer.' : `There is no page **${name}** here.`;
}

/** Shows a document that comes with the service. */
export function DocumentPage({ params }: PageProps) {
  const { name = 'README', heading } = params;
  const [text, setText] = useState<string | null>(null);
  const [, title = name, body = text ?? ''] = /^# (.*)\n([\s\S]*)$/.exec(text ?? '') ?? [];
  const markdown = useMarkdown(true);
  const shown = useRef<HTMLDivElement>(null);
  useEffect(() => {
    setText(null);
    let isCurrent = true;
    void read(name).then((page) => isCurrent && setText(withConsoleLinks(page, name)));
    return () => {
      isCurrent = false;
    };
  }, [name]);
  useEffect(() => {
    const headings = [...(shown.current?.querySelectorAll('h2, h3, h4, h5, h6') ?? [])];
    const found = headings.find(({ textContent }) => slugOf(textContent ?? '') === heading);
    if (text === null) return;
    if (found === undefined) scrollTo({ top: 0 });
    else found.scrollIntoView();
  }, [text, markdown, heading]);
  const follow = (event: MouseEvent) => {
    const link = (event.target as Element).closest('a');
    if (link === null || link.origin !== location.origin || link.pathname !== location.pathname) return;
    event.preventDefault(); // the link opens in this tab
    location.hash = link.hash;
  };
  return html`
    ${name !== 'README' && html`<p><a href=${documentAddress('README')}>← All documents</a></p>`}
    <h1>${name === 'README' ? 'Documents' : title}</h1>
    <div class="document" ref=${shown} onClick=${follow}>
      ${text === null ? html`<p class="muted">Reading the page</p>` : html`<${AnswerText} text=${body} isWhole markdown=${markdown} topLevel=${2} />`}
    </div>
  `;
}
