import { Lexer, type Token, type TokensList } from 'marked';

/** Characters in one piece with emphasis, links and the like: their time grows with the square of it. */
const maxInlineLength = 6000;
/** Quotes and lists in each other: each level reads all of its text again. Deeper ones are not drawn anyway. */
const maxBlockDepth = 25;

/** Owns how far a text is read as Markdown: no text of a model can make the page stand still. The rest is plain text. */
export class BoundedLexer extends Lexer {
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
