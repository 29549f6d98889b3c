import { usageOf } from '../../shared/api/ask.js';
import type { TranscriptItem, TranscriptOrder, TranscriptPart } from '../../shared/ipc/protocol.js';
import type { AddedMessage } from '../../shared/job.js';
import type { Reply } from '../../worker/http/exchange.js';
import { write } from '../../worker/http/responses.js';

/** Writes a conversation in one format, part by part. */
export interface TranscriptWriter {
  readonly type: string;
  /** Extension of a file name. */
  readonly extension: string;
  /** Whether the content of images and documents is included. */
  readonly withImages: boolean;
  head(): string;
  writePart(part: TranscriptPart): string;
  tail(): string;
}

/** Piece of a conversation to request. */
export type PieceOrder = Pick<TranscriptOrder, 'from' | 'withImages'>;

/** Yields a conversation as text, piece by piece. Each piece is requested after the previous one was consumed. */
export async function* written(
  read: (order: PieceOrder) => Promise<TranscriptItem>,
  writer: TranscriptWriter,
): AsyncGenerator<string> {
  yield writer.head();
  let from: TranscriptOrder['from'] = null;
  do {
    const { parts, next }: TranscriptItem = await read({ from, withImages: writer.withImages });
    yield parts.map((part) => writer.writePart(part)).join('');
    from = next;
  } while (from !== null);
  yield writer.tail();
}

/** Place in the JSON written so far: the field whose string has no closing quote yet, or `none`. */
type OpenPart = 'none' | 'system' | 'content' | 'images' | 'files';

/** Text that closes an open part before the next message or the end of the list. */
const closing: Readonly<Record<OpenPart, string>> = {
  none: 'null,"messages":[',
  system: '","messages":[',
  content: '"}',
  images: '"}]}',
  files: '"}]}',
};

/** Writes a conversation as the body `ConversationMessages`. */
export class JsonTranscript implements TranscriptWriter {
  readonly type = 'application/json; charset=utf-8';
  readonly extension = 'json';
  readonly withImages = true;
  readonly #id: string;
  readonly #requestId: string;
  #open: OpenPart = 'none';

  constructor(id: string, requestId: string) {
    this.#id = id;
    this.#requestId = requestId;
  }

  head(): string {
    return `{"conversation_id":${JSON.stringify(this.#id)},"system":`;
  }

  writePart(part: TranscriptPart): string {
    if (part.type === 'text') return JSON.stringify(part.text).slice(1, -1);
    if (part.type === 'image-data') return part.data;
    if (part.type === 'image') return this.#attachment('images', { media_type: part.mediaType });
    if (part.type === 'document') return this.#attachment('files', { name: part.name, media_type: part.mediaType });
    return part.role === 'system' ? this.#system() : this.#message(headOf(part));
  }

  tail(): string {
    return `${closing[this.#open]}],"request_id":${JSON.stringify(this.#requestId)}}`;
  }

  #system(): string {
    this.#open = 'system';
    return '"';
  }

  #message(head: object): string {
    const isFirst = this.#open === 'none' || this.#open === 'system';
    const before = `${closing[this.#open]}${isFirst ? '' : ','}`;
    this.#open = 'content';
    return `${before}${JSON.stringify(head).slice(0, -1)},"content":"`;
  }

  /** Writes the fields of an image or a document before its data. The images of a message come before its documents. */
  #attachment(list: 'images' | 'files', fields: object): string {
    const end = this.#open === 'images' ? '"}],' : '",';
    const before = this.#open === list ? '"},' : `${end}"${list}":[`;
    this.#open = list;
    return `${before}${JSON.stringify(fields).slice(0, -1)},"data":"`;
  }
}

/** Returns the fields of a message except its text, images and documents. */
function headOf({ role, figures }: TranscriptPart & { type: 'message' }) {
  const { model = null, usage, isInterrupted, additions } = figures ?? {};
  const used = usage === undefined ? null : usageOf(usage);
  const known = { ...(model !== null && { model }), ...(used !== null && { usage: used }) };
  const marks = {
    ...(isInterrupted && { interrupted: true }),
    ...(additions && { added_messages: additions.map(({ at, text }) => ({ at, content: text })) }),
  };
  return { role, ...known, ...marks };
}

const headings = { system: 'System', user: 'User', assistant: 'Assistant' } as const;

/** Control characters except tab and line feed, because they could control a reader's terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
const controlCharacters = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/**
 * Writes a conversation as Markdown. Each message is a block quote, which ends any heading or unclosed code fence in
 * it.
 */
export class MarkdownTranscript implements TranscriptWriter {
  readonly type = 'text/markdown; charset=utf-8';
  readonly extension = 'md';
  readonly withImages = false;
  readonly #id: string;
  /** Whether the last text ended with a carriage return: a line break may be split. */
  #endsWithReturn = false;
  /** Message that is being written, and the length of its text so far. */
  #message: TranscriptPart & { type: 'message' } = { type: 'message', role: 'user' };
  #length = 0;
  /** Messages that were added to the answer after the text so far. */
  #additions: readonly AddedMessage[] = [];
  /** Whether the text goes on after an added message, so that it needs a heading. */
  #goesOn = false;

  constructor(id: string) {
    this.#id = id;
  }

  head(): string {
    return `# Conversation ${this.#id}`;
  }

  writePart(part: TranscriptPart): string {
    if (part.type === 'text') return this.#textOf(part.text);
    if (part.type === 'image') return `\n\n*Image: ${part.mediaType}, ${part.bytes} bytes, left out here.*`;
    if (part.type === 'document')
      return `\n\n*File: ${part.name.replace(/[`*_[\]<>\\]/g, '\\$&')}, ${part.mediaType}, ${part.bytes} bytes, left out here.*`;
    if (part.type === 'image-data') return '';
    const before = this.#end();
    this.#message = part;
    this.#length = 0;
    this.#additions = part.figures?.additions ?? [];
    return before + this.#headingOf(part.role);
  }

  tail(): string {
    return `${this.#end()}\n`;
  }

  #headingOf(role: keyof typeof headings): string {
    this.#endsWithReturn = false;
    return `\n\n## ${headings[role]}\n\n> `;
  }

  /** Writes a piece of a text, with the messages that were added to it at their places. */
  #textOf(text: string): string {
    const [next, ...later] = this.#additions;
    if (text === '') return '';
    if (next === undefined || next.at >= this.#length + text.length) return this.#pieceOf(text);
    const before = text.slice(0, Math.max(0, next.at - this.#length));
    this.#additions = later;
    return this.#pieceOf(before) + this.#added(next) + this.#textOf(text.slice(before.length));
  }

  #pieceOf(text: string): string {
    if (text === '') return '';
    const heading = this.#goesOn ? this.#headingOf(this.#message.role) : '';
    this.#goesOn = false;
    this.#length += text.length;
    return heading + this.#quoted(text);
  }

  #added({ text }: AddedMessage): string {
    this.#goesOn = true;
    return this.#headingOf('user') + this.#quoted(text);
  }

  /** Writes what follows the text of a message. */
  #end(): string {
    const added = this.#additions.map((each) => this.#added(each)).join('');
    this.#additions = [];
    this.#goesOn = false;
    const isInterrupted = this.#message.figures?.isInterrupted === true;
    return isInterrupted ? `${added}\n\n*The user has ended this answer early.*` : added;
  }

  /** Quotes a text. In Markdown, a single carriage return is a line break too. */
  #quoted(text: string): string {
    const remainder = this.#endsWithReturn && text.startsWith('\n') ? text.slice(1) : text;
    this.#endsWithReturn = text.endsWith('\r');
    return remainder.replace(/\r\n?|\n/g, '\n> ').replace(controlCharacters, '\ufffd');
  }
}

/**
 * UTF-16 units to buffer before the response begins. Shorter transcripts get a Content-Length, and an error can still
 * replace them.
 */
const maxUnsentLength = 32 * 1024;

/** Sends text as fast as the client reads. An error after the first bytes cuts the response off. */
export async function sendPieces(
  res: Reply,
  headers: Readonly<Record<string, string>>,
  pieces: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<void> {
  let unsent = '';
  for await (const piece of pieces) {
    signal.throwIfAborted();
    unsent += piece;
    if (unsent.length <= maxUnsentLength) continue;
    if (!res.headersSent) res.writeHead(200, headers);
    if (res.req.method === 'HEAD') return void res.end();
    await write(res, unsent, signal);
    unsent = '';
  }
  if (!res.headersSent) res.writeHead(200, { ...headers, 'Content-Length': Buffer.byteLength(unsent) });
  res.end(unsent);
}
