import { useMemo, useRef } from 'preact/hooks';
import { html } from '../ui/html.mjs';
import { type MarkdownBlock, MarkdownReader } from './markdown-blocks.mjs';
import { blockNode } from './markdown-nodes.mjs';

/**
 * Markdown as nodes. Text only ever becomes text: nothing of it is read as HTML, no attribute comes from it but addresses
 * that were checked, and nothing is loaded from elsewhere.
 */
export function Markdown({ text, isWhole }: { readonly text: string; readonly isWhole: boolean }) {
  const reader = useRef(new MarkdownReader());
  const blocks = useMemo(() => (isWhole ? reader.current.whole(text) : reader.current.growing(text)), [text, isWhole]);
  return html`<div class="markdown">${blocks.map((block, index) => html`<${Block} key=${index} block=${block} />`)}</div>`;
}

/** Drawn again only when it is another text: Preact leaves alone a node that is the very same. */
function Block({ block }: { readonly block: MarkdownBlock }) {
  const { token, raw } = block;
  return useMemo(() => blockNode(token, 0), [raw, token.type]);
}
