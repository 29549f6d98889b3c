import { Lexer, type Token, type TokensList } from 'marked';

/** Characters in one piece with emphasis, links and the like: their time grows with the square of it. */
const maxInlineLength = 6000;
/** Quotes and lists in each other: each level reads all of its text again. Deeper ones are not drawn anyway. */
const maxBlockDepth = 25;

/** Owns how far a text is read as Markdown: no text of a model can make the page stand still. The rest is plain text. */
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

/** A block of Markdown: what it was written as, and what it is. Blocks of one text are never changed, only replaced. */
export interface MarkdownBlock {
  readonly raw: string;
  readonly token: Token;
}

/**
 * Owns the blocks of a text that grows. A block that another one follows will not change any more, so that only the last
 * one is read again. That is not quite so for links whose target stands at the end of the text: `whole` reads all of it.
 */
export class MarkdownReader {
  #settled: MarkdownBlock[] = [];
  #settledLength = 0;
  #text = '';

  /** The blocks of the text so far. */
  growing(text: string): readonly MarkdownBlock[] {
    if (!text.startsWith(this.#text)) this.#forget();
    this.#text = text;
    const open = blocksOf(text.slice(this.#settledLength));
    const last = Math.max(
      0,
      open.findLastIndex(({ token }) => token.type !== 'space'),
    ); // a list goes on after empty lines
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

/** What is nested so deeply that it can't be read is shown as it was written. */
function tokensOf(text: string): Token[] {
  try {
    return new BoundedLexer({ gfm: true }).lex(text);
  } catch {
    return [{ type: 'text', raw: text, text }];
  }
}
