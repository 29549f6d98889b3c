import { usageOf } from '../../shared/api/ask.js';
import type { TranscriptItem, TranscriptOrder, TranscriptPart } from '../../shared/ipc/protocol.js';
import type { Reply } from '../http/exchange.js';
import { write } from '../http/responses.js';

/** Writes a conversation out, part by part, in one form. */
export interface TranscriptWriter {
  readonly type: string;
  /** Of the name of a file. */
  readonly extension: string;
  /** Whether the content of images is part of it. */
  readonly withImages: boolean;
  head(): string;
  write(part: TranscriptPart): string;
  tail(): string;
}

/** Which piece of a conversation. */
export type PieceOrder = Pick<TranscriptOrder, 'from' | 'withImages'>;

/** What is sent: a conversation piece by piece, written out. Each is asked for when the one before was taken. */
export async function* written(
  read: (order: PieceOrder) => Promise<TranscriptItem>,
  writer: TranscriptWriter,
): AsyncGenerator<string> {
  yield writer.head();
  let from: TranscriptOrder['from'] = null;
  do {
    const { parts, next }: TranscriptItem = await read({ from, withImages: writer.withImages });
    yield parts.map((part) => writer.write(part)).join('');
    from = next;
  } while (from !== null);
  yield writer.tail();
}

/** Which string is open. */
type OpenPart = 'none' | 'system' | 'content' | 'image';

/** Ends what is open, so that the next message, or the end of the list, can follow. */
const closing: Readonly<Record<OpenPart, string>> = {
  none: 'null,"messages":[',
  system: '","messages":[',
  content: '"}',
  image: '"}]}',
};

/** A conversation as the body `ConversationMessages`. */
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

  write(part: TranscriptPart): string {
    if (part.type === 'text') return JSON.stringify(part.text).slice(1, -1);
    if (part.type === 'image-data') return part.data;
    if (part.type === 'image') return this.#image(part.mediaType);
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

  #image(mediaType: string): string {
    const before = this.#open === 'image' ? '"},' : '","images":[';
    this.#open = 'image';
    return `${before}{"media_type":"${mediaType}","data":"`;
  }
}

/** All of a message but its text and its images. */
function headOf({ role, figures }: TranscriptPart & { type: 'message' }) {
  const { model = null, usage } = figures ?? {};
  const used = usage === undefined ? null : usageOf(usage);
  return { role, ...(model !== null && { model }), ...(used !== null && { usage: used }) };
}

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

/** UTF-16 units that wait before anything is sent. What is no longer has a Content-Length, and can still become an error. */
const maxUnsentLength = 32 * 1024;

/**
 * Sends text as it comes, no faster than the client takes it. What fails after the first bytes were sent cuts the
 * response off.
 */
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
