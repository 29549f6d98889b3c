import type { Token } from 'marked';
import { BoundedLexer } from './bounded-lexer.mjs';

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
