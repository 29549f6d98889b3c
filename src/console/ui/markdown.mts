import { html } from 'htm/preact';
import { Lexer, Marked, type Token, type TokenizerExtension, type Tokens, type TokensList } from 'marked';
import type { ComponentChildren } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import type { MarkdownProps } from './answer.mjs';
import { CodeBlock, Formula } from './controls.mjs';

/** Character references that models write. Others are shown as written. */
const named: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00A0',
  copy: '©',
  reg: '®',
  trade: '™',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  times: '×',
  deg: '°',
  euro: '€',
  rarr: '→',
  larr: '←',
  harr: '↔',
  le: '≤',
  ge: '≥',
  ne: '≠',
  asymp: '≈',
  plusmn: '±',
  minus: '−',
  divide: '÷',
  middot: '·',
  bull: '•',
  infin: '∞',
  radic: '√',
  sum: '∑',
  pi: 'π',
  alpha: 'α',
  beta: 'β',
  gamma: 'γ',
  lambda: 'λ',
  mu: 'μ',
  micro: 'µ',
  sup2: '²',
  sup3: '³',
  frac12: '½',
  lsquo: '‘',
  rsquo: '’',
  ldquo: '“',
  rdquo: '”',
  laquo: '«',
  raquo: '»',
  sect: '§',
  para: '¶',
  thinsp: '\u2009',
  ensp: '\u2002',
  emsp: '\u2003',
};

/** Returns a text of Markdown with its character references decoded. */
export function plainText(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,8}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return Object.hasOwn(named, name) ? (named[name] as string) : whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return isCharacter ? String.fromCodePoint(code) : '\uFFFD';
  });
}

const safeProtocols = ['http:', 'https:', 'mailto:'];

/**
 * Returns the normalized address if a link may lead there, else null. A relative address may not: it would lead into
 * this service.
 */
function safeAddress(href: string): string | null {
  const address = parsedAddress(plainText(href));
  return address !== null && safeProtocols.includes(address.protocol) ? address.href : null;
}

/** Replaces URL.parse, which some browsers lack. */
function parsedAddress(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** Maximum nesting. Deeper blocks are shown as source. */
const maxDepth = 24;

type Drawn = ComponentChildren;

function blockNodes(tokens: readonly Token[], depth: number): Drawn[] {
  return tokens.map((token) => (depth > maxDepth ? token.raw : blockNode(token, depth + 1)));
}

/**
 * Returns the level of each heading, from the highest one to 6, and 0 for other blocks. The page has the levels above. An
 * answer may begin with any level, but no level is left out.
 */
export function headingLevels(tokens: readonly Token[], highest = 3): number[] {
  const open: number[] = [];
  return tokens.map((token) => {
    if (token.type !== 'heading') return 0;
    const depth: number = token.depth;
    while ((open.at(-1) ?? 0) >= depth) open.pop();
    open.push(depth);
    return Math.min(6, highest - 1 + open.length);
  });
}

/** Converts a block of Markdown to nodes. */
export function blockNode(token: Token, depth: number): Drawn {
  const draw = blocks[token.type];
  return draw === undefined ? inlineNode(token, depth) : draw(token as never, depth);
}

/** Functions that draw a block, by token type. Link definitions and empty lines draw nothing. */
const blocks: Readonly<Record<string, (token: never, depth: number) => Drawn>> = {
  space: () => null,
  def: () => null,
  hr: () => html`<hr />`,
  math: ({ text, raw }: MathToken) => html`<${Formula} text=${text} raw=${raw.trim()} isDisplayed />`,
  code: ({ text, lang = '' }: Tokens.Code) => html`<${CodeBlock} code=${text} language=${lang.split(/\s/)[0]} />`,
  heading: ({ depth: level, tokens }: Tokens.Heading, depth) =>
    html`<${`h${Math.min(6, level + 2)}`}>${inlineNodes(tokens, depth)}<//>`,
  paragraph: ({ tokens }: Tokens.Paragraph, depth) => html`<p>${inlineNodes(tokens, depth)}</p>`,
  blockquote: ({ tokens }: Tokens.Blockquote, depth) => html`<blockquote>${blockNodes(tokens, depth)}</blockquote>`,
  html: ({ block, text }: Tokens.HTML) =>
    block ? html`<p class="source">${plainText(text.trimEnd())}</p>` : inlineHtml(text),
  list: listNode,
  table: tableNode,
  footnote: ({ label, tokens }: FootnoteToken, depth) =>
    html`<p class="footnote" tabindex="-1" data-note=${label}><sup>${label}</sup> ${inlineNodes(tokens, depth)} <button type="button" class="link" aria-label=${`Back to the place of note ${label}`} onClick=${focusPart('mark', label)}>↩</button></p>`,
};

/** Returns a handler that focuses the footnote in the same text, or the first mark of it. */
function focusPart(part: 'note' | 'mark', label: string) {
  return ({ currentTarget }: { readonly currentTarget: HTMLElement }) => {
    const parts = currentTarget.closest('.markdown')?.querySelectorAll<HTMLElement>(`[data-${part}]`) ?? [];
    [...parts].find((one) => one.dataset[part] === label)?.focus();
  };
}

function listNode({ ordered, start, items }: Tokens.List, depth: number): Drawn {
  const drawn = items.map(
    ({ task, tokens }) => html`<li class=${task ? 'task' : undefined}>${blockNodes(tokens, depth)}</li>`,
  );
  return ordered
    ? html`<ol start=${start === 1 || start === '' ? undefined : start}>${drawn}</ol>`
    : html`<ul>${drawn}</ul>`;
}

function tableNode({ header, rows }: Tokens.Table, depth: number): Drawn {
  const titleOf = (index: number) => header[index]?.text;
  const cells = (row: readonly Tokens.TableCell[], tag: 'th' | 'td') =>
    row.map(
      ({ tokens, align }, index) =>
        html`<${tag} class=${align ? `to-${align}` : undefined} data-title=${tag === 'td' ? titleOf(index) : undefined}>${inlineNodes(tokens, depth)}<//>`,
    );
  return html`<div class="table" role="group" aria-label="Table" tabindex="0">
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
  math: ({ text, raw, isDisplayed }: MathToken) =>
    html`<${Formula} text=${text} raw=${raw} isDisplayed=${isDisplayed} />`,
  strong: ({ tokens }: Tokens.Strong, depth) => html`<strong>${inlineNodes(tokens, depth)}</strong>`,
  em: ({ tokens }: Tokens.Em, depth) => html`<em>${inlineNodes(tokens, depth)}</em>`,
  del: ({ tokens }: Tokens.Del, depth) => html`<del>${inlineNodes(tokens, depth)}</del>`,
  codespan: ({ text }: Tokens.Codespan) => html`<code>${breakable(text)}</code>`,
  checkbox: ({ checked }: Tokens.Checkbox) =>
    html`<span role="img" aria-label=${checked ? 'done' : 'open'}>${checked ? '☑' : '☐'} </span>`,
  footnotemark: ({ label }: FootnoteToken) =>
    html`<sup><button type="button" class="link" aria-label=${`Note ${label}`} data-mark=${label} onClick=${focusPart('note', label)}>${label}</button></sup>`,
  html: ({ text }: Tokens.HTML) => inlineHtml(text),
  link: ({ href, tokens }: Tokens.Link, depth) => linkNode(href, inlineNodes(tokens, depth)),
  // Links replace images: an answer must not make a browser send requests to other servers.
  image: ({ href, text }: Tokens.Image) => linkNode(href, `Image: ${plainText(text) || href}`),
};

/** Draws `<br>` as a line break, because table cells have no other, and any other HTML as text. */
function inlineHtml(text: string): Drawn {
  return /^<br\s*\/?>$/i.test(text.trim()) ? html`<br />` : text;
}

function linkNode(href: string, content: Drawn): Drawn {
  const address = safeAddress(href);
  if (address === null) return html`<span title=${plainText(href)}>${content}</span>`;
  return html`<a href=${address} target="_blank" rel="noopener noreferrer">${content}</a>`;
}

/**
 * Shows Markdown. No text is parsed as HTML, attributes contain only checked addresses, and nothing is loaded from
 * other servers.
 */
export function Markdown({ text, isWhole, topLevel }: MarkdownProps) {
  const reader = useRef(new MarkdownReader());
  const blocks = useMemo(() => (isWhole ? reader.current.whole(text) : reader.current.growing(text)), [text, isWhole]);
  const levels = headingLevels(
    blocks.map(({ token }) => token),
    topLevel,
  );
  return html`<div class="markdown">${blocks.map((block, index) => html`<${Block} key=${index} block=${block} level=${levels[index]} />`)}</div>`;
}

/** Redraws a block only if it was parsed again: Preact skips a node that is identical to the previous one. */
function Block({ block, level }: { readonly block: MarkdownBlock; readonly level: number }) {
  const { token } = block;
  return useMemo(() => blockNode(level === 0 ? token : ({ ...token, depth: level - 2 } as Token), 0), [token, level]);
}

/** Allows line breaks after an underscore or a slash in code. */
function breakable(code: string) {
  return code
    .split(/(?<=[A-Za-z0-9][_/])(?=[A-Za-z0-9])/)
    .map((part, index) => (index === 0 ? part : html`<wbr />${part}`));
}

/** Maximum length of inline text that is parsed. The time to parse emphasis and links grows with its square. */
const maxInlineLength = 6000;
/** Maximum nesting of quotes and lists: each level parses all of its text again. Deeper levels are not drawn anyway. */
const maxBlockDepth = 25;

/** Token of a formula in TeX. */
interface MathToken {
  readonly type: 'math';
  readonly raw: string;
  readonly text: string;
  /** Whether the formula is a block, not part of a line. */
  readonly isDisplayed: boolean;
}

/** Formulas. Each pattern requires an end and limits the length. A dollar before a space or a number may be money. */
const display = /^(?:\$\$([^$]{1,2000})\$\$|\\\[([\s\S]{1,2000}?)\\\])/;
/** Environments that models often write without dollars around them. */
const environments = 'align|alignat|aligned|array|cases|equation|gather|gathered|[bBpvV]?matrix|multline|split';
const environment = new RegExp(String.raw`^(\\begin\{((?:${environments})\*?)\}[^$]{1,2000}?\\end\{\2\})`);
const environmentBlock = new RegExp(String.raw`^ {0,3}${environment.source.slice(1)} *(?:\n+|$)`);
const block = new RegExp(String.raw`^ {0,3}(?:${display.source.slice(1)}) *(?:\n+|$)`);
const inline = /^(?:\\\(([\s\S]{1,2000}?)\\\)|\$(?![\s$])((?:[^$\\\n]|\\.){1,500}?)(?<!\s)\$(?![\w$]))/;

/** Character references of HTML in formulas, which TeX lacks. */
const references: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&amp;': '&' };

function mathOf(found: RegExpExecArray | null, isDisplayed: boolean): MathToken | undefined {
  if (found === null) return undefined;
  const [raw, first, second] = found;
  const text = (first ?? second ?? '').trim().replace(/&(?:lt|gt|amp);/g, (reference) => references[reference] ?? '');
  return { type: 'math', raw, text, isDisplayed };
}

const math: readonly TokenizerExtension[] = [
  { name: 'math', level: 'block', tokenizer: (text) => mathOf(block.exec(text) ?? environmentBlock.exec(text), true) },
  {
    name: 'math',
    level: 'inline',
    start: (text) => text.search(/\$|\\(?:[([]|begin\{)/),
    tokenizer: (text) => mathOf(display.exec(text) ?? environment.exec(text), true) ?? mathOf(inline.exec(text), false),
  },
];

/** Footnote, or the mark in the text that leads to it. */
interface FootnoteToken {
  readonly type: 'footnote' | 'footnotemark';
  readonly raw: string;
  readonly label: string;
  /** Tokens of the text of a footnote; empty for a mark. */
  readonly tokens: Token[];
}

const label = String.raw`\[\^([^\]\s^]{1,40})\]`;
/** A footnote ends at an empty line, or at the next footnote. */
const footnote = new RegExp(String.raw`^ {0,3}${label}:[ \t]*([^\n]*(?:\n(?![ \t]*\n| {0,3}\[\^)[^\n]+)*)(?:\n+|$)`);
const footnoteMark = new RegExp(`^${label}`);

/** Returns the extensions for the footnotes of a text. A mark without its footnote is not one: `[^a]` in a pattern. */
function footnotesIn(text: string): readonly TokenizerExtension[] {
  const labels = new Set(Array.from(text.matchAll(new RegExp(`^ {0,3}${label}:`, 'gm')), ([, name]) => name));
  if (labels.size === 0) return [];
  return [
    {
      name: 'footnote',
      level: 'block',
      tokenizer(source) {
        const [raw, name = '', note = ''] = footnote.exec(source) ?? [];
        if (raw === undefined) return undefined;
        return { type: 'footnote', raw, label: name, tokens: this.lexer.inlineTokens(note.trim()) };
      },
    },
    {
      name: 'footnotemark',
      level: 'inline',
      start: (source) => source.indexOf('[^'),
      tokenizer(source) {
        const [raw, name = ''] = footnoteMark.exec(source) ?? [];
        return raw === undefined || !labels.has(name)
          ? undefined
          : { type: 'footnotemark', raw, label: name, tokens: [] };
      },
    },
  ];
}

/** Parses a text within limits, so that no answer can freeze the page. Text beyond the limits stays plain. */
class BoundedLexer extends Lexer {
  #depth = 0;

  override blockTokens(src: string, tokens?: Token[], isClipped?: boolean): Token[];
  override blockTokens(src: string, tokens?: TokensList, isClipped?: boolean): TokensList;
  override blockTokens(src: string, tokens: Token[] = [], isClipped = false): Token[] {
    if (this.#depth >= maxBlockDepth) return plainTokens(src, tokens);
    this.#depth++;
    const read = super.blockTokens(src, tokens, isClipped);
    this.#depth--;
    return read;
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    return src.length > maxInlineLength ? plainTokens(src, tokens) : super.inlineTokens(src, tokens);
  }
}

function plainTokens(text: string, tokens: Token[]): Token[] {
  tokens.push({ type: 'text', raw: text, text });
  return tokens;
}

/** Block of Markdown: its source and its token. A block never changes: if its text grows, a new block replaces it. */
interface MarkdownBlock {
  readonly raw: string;
  readonly token: Token;
}

/**
 * Parses a growing text. Only its last block can change, so only this one is parsed again. A link whose target is
 * defined later in the text is resolved only by `whole`, which parses everything.
 */
export class MarkdownReader {
  #settled: MarkdownBlock[] = [];
  #settledLength = 0;
  #text = '';

  /** Returns the blocks of the text so far. */
  growing(text: string): readonly MarkdownBlock[] {
    if (!text.startsWith(this.#text)) this.#forget();
    this.#text = text;
    const open = blocksOf(text.slice(this.#settledLength));
    const last = Math.max(
      0,
      open.findLastIndex(({ token }) => token.type !== 'space'),
    ); // a list may continue after empty lines
    const settled = open.slice(0, last);
    this.#settled.push(...settled);
    this.#settledLength += settled.reduce((length, { raw }) => length + raw.length, 0);
    return [...this.#settled, ...open.slice(last)];
  }

  whole(text: string): readonly MarkdownBlock[] {
    this.#forget();
    return blocksOf(text);
  }

  #forget(): void {
    this.#settled = [];
    this.#settledLength = 0;
  }
}

function blocksOf(text: string): MarkdownBlock[] {
  return tokensOf(text.replaceAll('\r\n', '\n')).map((token) => ({ raw: token.raw, token }));
}

/** Parses a text. If the parser throws, the text is shown as written. */
function tokensOf(text: string): Token[] {
  try {
    return new BoundedLexer(new Marked({ gfm: true, extensions: [...math, ...footnotesIn(text)] }).defaults).lex(text);
  } catch {
    return [{ type: 'text', raw: text, text }];
  }
}
