import type { TranscriptPart } from '../../shared/ipc/transcript.js';
import type { TranscriptWriter } from './transcript-writer.js';

const headings = { system: 'System', user: 'User', assistant: 'Assistant' } as const;

/** All but tab and line feed: they mean nothing in a text, but something to a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
const controlCharacters = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/**
 * A conversation as Markdown. Each message is a block quote: whatever stands in it, a heading or a code fence that is
 * never closed, ends with it.
 */
export class MarkdownTranscript implements TranscriptWriter {
  readonly type = 'text/markdown; charset=utf-8';
  readonly extension = 'md';
  readonly withImages = false;
  readonly #id: string;
  /** A line break may come in two pieces. */
  #endsWithReturn = false;

  constructor(id: string) {
    this.#id = id;
  }

  head(): string {
    return `# Conversation ${this.#id}`;
  }

  write(part: TranscriptPart): string {
    if (part.type === 'text') return this.#quoted(part.text);
    if (part.type === 'image') return `\n\n*Image: ${part.mediaType}, ${part.bytes} bytes, left out here.*`;
    if (part.type === 'image-data') return '';
    this.#endsWithReturn = false;
    return `\n\n## ${headings[part.role]}\n\n> `;
  }

  tail(): string {
    return '\n';
  }

  /** A carriage return alone is a line break to Markdown, too. */
  #quoted(text: string): string {
    const rest = this.#endsWithReturn && text.startsWith('\n') ? text.slice(1) : text;
    this.#endsWithReturn = text.endsWith('\r');
    return rest.replace(/\r\n?|\n/g, '\n> ').replace(controlCharacters, '\ufffd');
  }
}
