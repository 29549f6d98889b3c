import { StringDecoder } from 'node:string_decoder';
import type { Message, ToolResult, Turn } from '../../primary/cli/contract/adapter.js';
import type { ClientText } from '../../shared/client.js';
import { yieldToEventLoop } from '../../shared/clock.js';
import { type Attachment, type FileDocument, isDocument } from '../../shared/job.js';
import { documentTable, readTypes } from '../../shared/tables/document-types.js';
import { blankLine } from '../../shared/text/turns.js';
import type { TextReaders } from './text-reader.js';

/** Returns the text of a document. */
export type ReadDocument = (document: FileDocument) => Promise<string>;

/**
 * Replaces documents by their texts, for a program that supports none. Documents are read one after the other, because
 * each may need a process, and none is left when the first one fails. With `isNative`, it only replaces documents in
 * results of tools, which programs do not pass to the model, and documents of types that no model takes.
 */
export async function withDocumentTexts(turn: Turn, isNative: boolean, read: ReadDocument): Promise<Turn> {
  if (!hasDocuments(turn) && !turn.history.some(hasDocuments)) return turn;
  const { text, images, results } = turn;
  const question = await messageTexts({ text, images, results }, isNative, read);
  const history: Message[] = [];
  for (const message of turn.history) history.push(await historyTexts(message, isNative, read));
  return { ...turn, ...question, history };
}

/** Returns a message without documents unchanged, because a conversation decodes its texts only on access. */
async function historyTexts(message: Message, isNative: boolean, read: ReadDocument): Promise<Message> {
  if (!hasDocuments(message)) return message;
  const { role, text, images, calls, results } = message;
  return { role, ...(await messageTexts({ text, images, results }, isNative, read)), ...(calls && { calls }) };
}

function hasDocuments({ images, results }: PartsWithDocuments): boolean {
  return images?.some(isDocument) === true || results?.some(hasDocuments) === true;
}

interface PartsWithDocuments {
  readonly images?: readonly Attachment[] | undefined;
  readonly results?: readonly ToolResult[] | undefined;
}

async function messageTexts(
  { text, images, results }: PartsWithDocuments & { readonly text: string },
  isNative: boolean,
  read: ReadDocument,
) {
  const content = { text, ...(images && { images }) };
  const shown = await contentTexts(content, isNative, read);
  const shownResults: ToolResult[] = [];
  for (const result of results ?? []) shownResults.push(await contentTexts(result, false, read));
  return { ...shown, ...(results && { results: shownResults }) };
}

type DocumentContent = { readonly text: string; readonly images?: readonly Attachment[] | undefined };

/** Replaces the documents of a message by their texts, in their places. `isNative`: the program takes the types that models take. */
async function contentTexts<C extends DocumentContent>(content: C, isNative: boolean, read: ReadDocument): Promise<C> {
  const { text, images = [] } = content;
  const isReplaced = (each: Attachment): each is FileDocument =>
    isDocument(each) && !(isNative && documentTable[each.mediaType].isNative);
  if (!images.some(isReplaced)) return content;
  let whole = '';
  let end = 0;
  const shownImages: Attachment[] = [];
  const add = (piece: string) => {
    if (piece !== '') whole += whole === '' ? piece : blankLine + piece;
  };
  for (const each of images.toSorted((a, b) => a.at - b.at)) {
    add(text.slice(end, each.at).trim());
    end = each.at;
    if (isReplaced(each)) add(await marked(each, await read(each)));
    else shownImages.push({ ...each, at: whole.length });
  }
  add(text.slice(end).trimStart());
  return { ...content, text: whole, images: shownImages };
}

/** Wraps the text of a document in a tag with its name and context. The text itself cannot close the tag. */
async function marked({ name, context = '' }: FileDocument, text: string): Promise<string> {
  const inner = (await withoutEndTags(text)).trim();
  const attributes = Object.entries({ name, context }).flatMap(([key, value]) =>
    value === '' ? [] : [` ${key}=${JSON.stringify(value)}`],
  );
  return `<document${attributes.join('')}>\n${inner}\n</document>`;
}

/** Length of the text that is read in one turn of the event loop, in UTF-16 units or in base64. */
const pieceLength = 256 * 1024;
const endTag = '</document';

/** Escapes the end tags in a text, which may have a million of them. Yields to the event loop between its pieces. */
async function withoutEndTags(text: string): Promise<string> {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    if (at > 0) await yieldToEventLoop();
    const end = Math.min(at + pieceLength, text.length);
    const tag = text.slice(end - endTag.length, end + endTag.length).indexOf(endTag); // no tag is cut
    const to = tag < 0 || end === text.length ? end : end - endTag.length + tag;
    pieces.push(text.slice(at, to).replaceAll(endTag, '<\\/document'));
    at = to;
  }
  return pieces.join('');
}

/** Decodes a text. Yields to the event loop between its pieces. */
async function decoded(base64: string): Promise<string> {
  const decoder = new StringDecoder('utf8');
  const pieces: string[] = [];
  for (let at = 0; at < base64.length; at += pieceLength) {
    if (at > 0) await yieldToEventLoop();
    pieces.push(decoder.write(Buffer.from(base64.slice(at, at + pieceLength), 'base64')));
  }
  return pieces.join('') + decoder.end();
}

/** Returns a function that reads the documents of a client: texts at once, others by the reader of their type. */
export function documentReader(
  readers: TextReaders<'readText'>,
  client: ClientText,
  signal: AbortSignal,
): ReadDocument {
  return async (document) => {
    const type = readTypes.find((each) => each === document.mediaType);
    return type === undefined ? decoded(document.data) : readers[type].readText(document, client, signal);
  };
}
