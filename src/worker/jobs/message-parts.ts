import { imageFault, imageType } from '../../shared/api/ask.js';
import { invalid } from '../../shared/errors.js';
import type { Attachment, Image, Message, ToolCall, ToolResult } from '../../shared/job.js';
import { blankLine } from '../../shared/text/turns.js';
import { wellFormedJson } from '../../shared/text/well-formed.js';
import type { SentDocument } from './documents.js';

/** Part of a message in a form that all compatibility APIs share. */
export type Part = ShownPart | ({ readonly type: 'call' } & ToolCall) | ResultPart;
/** Part that may also stand in a tool result. */
export type ShownPart =
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'image' } & Omit<Image, 'at'>)
  | ({ readonly type: 'document' } & SentDocument);
export type ResultPart = { readonly type: 'result' } & ToolResult;

/**
 * Builds a message: joins its texts with blank lines, and records the position of each image and document in the joined
 * text.
 */
export function messageOf(role: Message['role'], parts: readonly Part[]): Message {
  const calls = parts.flatMap((part) =>
    part.type === 'call' ? [{ ...withoutType(part), input: wellFormedJson(part.input) }] : [],
  );
  const results = parts.flatMap((part) => (part.type === 'result' ? [withoutType(part)] : []));
  const shown = parts.filter((part) => part.type !== 'call' && part.type !== 'result');
  return { role, ...contentOf(shown), ...(calls.length > 0 && { calls }), ...(results.length > 0 && { results }) };
}

function withoutType<T extends { readonly type: string }>({ type: _, ...rest }: T): Omit<T, 'type'> {
  return rest;
}

/** Joins the texts of parts, and places their images and documents. */
export function contentOf(parts: readonly ShownPart[]): Pick<Message, 'text' | 'images'> {
  let text = '';
  let isAfterText = false;
  const images: Attachment[] = [];
  for (const part of parts) {
    if (part.type !== 'text') images.push({ ...withoutType<typeof part>(part), at: text.length } as Attachment);
    else text += isAfterText && part.text !== '' ? blankLine + part.text : part.text;
    isAfterText = part.type === 'text' && text !== '';
  }
  return images.length === 0 ? { text } : { text, images };
}

/** Returns an image from its base64, in which some encoders break the lines. Throws `validation_error`. */
export function imageOf(mediaType: string, sent: string, path: string): ShownPart {
  const data = sent.replace(/\s+/g, '');
  const known = imageType.safeParse(mediaType);
  if (!known.success) throw invalid(path, known.error.issues[0]?.message ?? 'is of an unknown type');
  const fault = imageFault(known.data, data);
  if (fault !== null) throw invalid(path, fault);
  return { type: 'image', mediaType: known.data, data };
}
