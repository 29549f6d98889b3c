import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { isBase64 } from '../../shared/api/ask.js';
import { invalid } from '../../shared/errors.js';
import type { FileDocument } from '../../shared/job.js';
import { wellFormed } from '../../shared/text/well-formed.js';
import { inspectPdf } from './pdf.js';

/** Document without its position in a message. */
export type SentDocument = Omit<FileDocument, 'at'>;

/** Maximum size of a PDF. */
export const maxPdfBytes = 32 * 1024 * 1024;
const maxNameLength = 255;

const pdf = 'application/pdf';
/** Types of files that are plain text, beside `text/*`. */
const textTypes =
  /^(?:text\/|application\/(?:json|jsonl|x-ndjson|xml|yaml|x-yaml|toml|javascript|sql|csv)$|.+\+(?:json|xml)$)/;

/**
 * Checks a document in base64, in which some encoders break the lines. `name`: the unchecked name of the file. Throws
 * `validation_error` that names the field.
 */
export function documentOf(mediaType: string, sent: string, path: string, name: unknown = null): SentDocument {
  const type = mediaType.toLowerCase().split(';', 1)[0]?.trim() ?? '';
  if (type !== pdf && !textTypes.test(type))
    throw invalid(path, `must be ${pdf}, or a type of text such as text/plain`);
  const data = /\s/.test(sent) ? sent.replace(/\s+/g, '') : sent;
  if (!isBase64(data)) throw invalid(path, 'must be base64');
  const bytes = Buffer.from(data, 'base64');
  if (type !== pdf) return textDocument(decodedText(bytes, path), path, name);
  if (bytes.length > maxPdfBytes) throw invalid(path, 'must be at most 32 MB');
  const finding = inspectPdf(bytes);
  if ('fault' in finding) throw invalid(path, finding.fault);
  const digest = createHash('sha256').update(bytes).digest('base64');
  return { mediaType: pdf, data, digest, pages: finding.pages, name: nameOf(name, path) };
}

/** Checks a document that is a text. Throws `validation_error` that names the field. */
export function textDocument(text: string, path: string, name: unknown = null): SentDocument {
  if (text.trim() === '') throw invalid(path, 'must not be empty');
  const bytes = Buffer.from(wellFormed(text));
  const digest = createHash('sha256').update(bytes).digest('base64');
  return { mediaType: 'text/plain', data: bytes.toString('base64'), digest, name: nameOf(name, path) };
}

function decodedText(bytes: Buffer, path: string): string {
  if (!isUtf8(bytes)) throw invalid(path, 'must be a text in UTF-8');
  if (bytes.includes(0)) throw invalid(path, 'must be a text, without NUL');
  return bytes.toString('utf8');
}

function nameOf(name: unknown, path: string): string {
  if (name != null && typeof name !== 'string') throw invalid(path, 'must have a string as its name');
  // The name becomes part of the text for the model, and must stay on its line.
  const plainName = wellFormed(name ?? '')
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim();
  if (plainName.length > maxNameLength) throw invalid(path, `must have a name of at most ${maxNameLength} characters`);
  return plainName;
}
