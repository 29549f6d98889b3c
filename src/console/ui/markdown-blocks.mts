import { Lexer, Marked, type Token, type TokenizerExtension, type TokensList } from 'marked';

/** Maximum length of inline text that is parsed. The time to parse emphasis and links grows with its square. */
const maxInlineLength = 6000;
/** Maximum nesting of quotes and lists: each level parses all of its text again. Deeper levels are not drawn anyway. */
const maxBlockDepth = 25;

/** Token of a formula in TeX. */
export interface MathToken {
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

/** Block of Markdown: its source and its token. A block never changes; another one replaces it. */
export interface MarkdownBlock {
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
    return new BoundedLexer(new Marked({ gfm: true, extensions: [...math] }).defaults).lex(text);
  } catch {
    return [{ type: 'text', raw: text, text }];
  }
}
