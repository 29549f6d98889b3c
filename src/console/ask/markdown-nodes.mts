import type { Token, Tokens } from 'marked';
import type { ComponentChildren } from 'preact';
import { CodeBlock } from '../ui/code-block.mjs';
import { html } from '../ui/html.mjs';
import { plainText, safeAddress } from './markdown-text.mjs';

/** Beyond this, nested blocks are shown as they were written. */
const maxDepth = 24;

type Drawn = ComponentChildren;

function blockNodes(tokens: readonly Token[], depth: number): Drawn[] {
  return tokens.map((token) => (depth > maxDepth ? token.raw : blockNode(token, depth + 1)));
}

/** One block of Markdown as nodes. */
export function blockNode(token: Token, depth: number): Drawn {
  const draw = blocks[token.type];
  return draw === undefined ? inlineNode(token, depth) : draw(token as never, depth);
}

const headings = ['h3', 'h4', 'h5', 'h6', 'h6', 'h6'] as const;

/** By the type of their token. Definitions of links and empty lines are nothing to see. */
const blocks: Readonly<Record<string, (token: never, depth: number) => Drawn>> = {
  space: () => null,
  def: () => null,
  hr: () => html`<hr />`,
  code: ({ text, lang = '' }: Tokens.Code) => html`<${CodeBlock} code=${text} language=${lang.split(/\s/)[0]} />`,
  heading: ({ depth: level, tokens }: Tokens.Heading, depth) =>
    html`<${headings[level - 1] ?? 'h6'}>${inlineNodes(tokens, depth)}<//>`,
  paragraph: ({ tokens }: Tokens.Paragraph, depth) => html`<p>${inlineNodes(tokens, depth)}</p>`,
  blockquote: ({ tokens }: Tokens.Blockquote, depth) => html`<blockquote>${blockNodes(tokens, depth)}</blockquote>`,
  html: ({ block, text }: Tokens.HTML) => (block ? html`<p class="source">${text.trimEnd()}</p>` : inlineHtml(text)),
  list: listNode,
  table: tableNode,
};

function listNode({ ordered, start, items }: Tokens.List, depth: number): Drawn {
  const drawn = items.map(
    ({ task, tokens }) => html`<li class=${task ? 'task' : undefined}>${blockNodes(tokens, depth)}</li>`,
  );
  return ordered
    ? html`<ol start=${start === 1 || start === '' ? undefined : start}>${drawn}</ol>`
    : html`<ul>${drawn}</ul>`;
}

function tableNode({ header, rows }: Tokens.Table, depth: number): Drawn {
  const cells = (row: readonly Tokens.TableCell[], tag: 'th' | 'td') =>
    row.map(
      ({ tokens, align }) => html`<${tag} class=${align ? `to-${align}` : undefined}>${inlineNodes(tokens, depth)}<//>`,
    );
  return html`<div class="table" role="region" aria-label="Table" tabindex="0">
    <table>
      <thead><tr>${cells(header, 'th')}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${cells(row, 'td')}</tr>`)}</tbody>
    </table>
  </div>`;
}

function inlineNodes(tokens: readonly Token[] | undefined, depth: number): Drawn[] {
  return (tokens ?? []).map((token) => (depth > maxDepth ? token.raw : inlineNode(token, depth + 1)));
}

function inlineNode(token: Token, depth: number): Drawn {
  const draw = inlines[token.type];
  return draw === undefined ? token.raw : draw(token as never, depth);
}

const inlines: Readonly<Record<string, (token: never, depth: number) => Drawn>> = {
  text: ({ text, tokens }: Tokens.Text, depth) => (tokens === undefined ? plainText(text) : inlineNodes(tokens, depth)),
  escape: ({ text }: Tokens.Escape) => text,
  br: () => html`<br />`,
  strong: ({ tokens }: Tokens.Strong, depth) => html`<strong>${inlineNodes(tokens, depth)}</strong>`,
  em: ({ tokens }: Tokens.Em, depth) => html`<em>${inlineNodes(tokens, depth)}</em>`,
  del: ({ tokens }: Tokens.Del, depth) => html`<del>${inlineNodes(tokens, depth)}</del>`,
  codespan: ({ text }: Tokens.Codespan) => html`<code>${text}</code>`,
  checkbox: ({ checked }: Tokens.Checkbox) =>
    html`<span role="img" aria-label=${checked ? 'done' : 'open'}>${checked ? '☑' : '☐'} </span>`,
  html: ({ text }: Tokens.HTML) => inlineHtml(text),
  link: ({ href, tokens }: Tokens.Link, depth) => linkNode(href, inlineNodes(tokens, depth)),
  // What stands in an answer must not make a browser ask another server for anything.
  image: ({ href, text }: Tokens.Image) => linkNode(href, `Image: ${plainText(text) || href}`),
};

/** Tables have no other way to break a line. */
function inlineHtml(text: string): Drawn {
  return /^<br\s*\/?>$/i.test(text.trim()) ? html`<br />` : text;
}

function linkNode(href: string, content: Drawn): Drawn {
  const address = safeAddress(href);
  if (address === null) return html`<span title=${plainText(href)}>${content}</span>`;
  return html`<a href=${address} target="_blank" rel="noopener noreferrer">${content}</a>`;
}
