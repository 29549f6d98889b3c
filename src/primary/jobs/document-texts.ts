import { type Attachment, type FileDocument, isDocument } from '../../shared/job.js';
import { blankLine } from '../../shared/text/turns.js';
import type { Message, ToolResult, Turn } from '../cli/contract/adapter.js';
import type { PdfReader } from '../cli/process/pdf-reader.js';

/** Returns the text of a document. */
export type ReadDocument = (document: FileDocument) => Promise<string>;

/**
 * Replaces documents by their texts, for a program that supports none. Documents are read one after the other, because
 * each may need a process, and none is left when the first one fails. With `isNative`, only the documents in results of
 * tools are replaced, because programs pass no documents from tools to the model.
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
  const shown = isNative ? content : await contentTexts(content, read);
  const shownResults: ToolResult[] = [];
  for (const result of results ?? []) shownResults.push(await contentTexts(result, read));
  return { ...shown, ...(results && { results: shownResults }) };
}

type DocumentContent = { readonly text: string; readonly images?: readonly Attachment[] | undefined };

/** Replaces the documents of a message by their texts, in their places. */
async function contentTexts<C extends DocumentContent>(content: C, read: ReadDocument): Promise<C> {
  const { text, images = [] } = content;
  if (!images.some(isDocument)) return content;
  let whole = '';
  let end = 0;
  const shownImages: Attachment[] = [];
  const add = (piece: string) => {
    if (piece !== '') whole += whole === '' || whole.endsWith(blankLine) ? piece : blankLine + piece;
  };
  for (const each of images.toSorted((a, b) => a.at - b.at)) {
    add(text.slice(end, each.at).trim());
    end = each.at;
    if (isDocument(each)) add(marked(each, await read(each)));
    else shownImages.push({ ...each, at: whole.length });
  }
  add(text.slice(end).trimStart());
  return { ...content, text: whole, images: shownImages };
}

/** Wraps the text of a document in a tag with its name and context. The text itself cannot close the tag. */
function marked({ name, context = '' }: FileDocument, text: string): string {
  const inner = text.replaceAll('</document', '<\\/document').trim();
  const attributes = Object.entries({ name, context }).flatMap(([key, value]) =>
    value === '' ? [] : [` ${key}=${JSON.stringify(value)}`],
  );
  return `<document${attributes.join('')}>\n${inner}\n</document>`;
}

/** Returns a function that reads the documents of a client: PDFs by their reader, texts at once. */
export function documentReader(pdfs: Pick<PdfReader, 'readText'>, client: string, signal: AbortSignal): ReadDocument {
  return async (document) =>
    document.mediaType === 'text/plain'
      ? Buffer.from(document.data, 'base64').toString()
      : pdfs.readText(document, client, signal);
}
