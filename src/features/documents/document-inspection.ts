import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { isBase64 } from '../../shared/api/ask.js';
import { setNewest } from '../../shared/bounded-map.js';
import { binaryTypeOf, type DocumentType, maxBinaryBytes } from '../../shared/tables/document-types.js';
import { wellFormed } from '../../shared/text/well-formed.js';
import { inspectPdf } from './pdf.js';

/** Number of PDFs whose findings are remembered. */
const maxRemembered = 1000;

/** Document from a client, as bytes in base64 or as text. */
export interface DocumentTask {
  readonly form: 'base64' | 'text';
  readonly mediaType: DocumentType;
  readonly data: string;
}

/** Result of an inspection: the document's fault, or what a job needs. */
export type DocumentFinding =
  | { readonly fault: string }
  | {
      /** SHA-256 of the bytes, in base64. */
      readonly digest: string;
      /** Number of pages of a PDF. */
      readonly pages?: number;
      /** Bytes in base64; null if the client has already sent them in the same form, which need not be copied. */
      readonly data: string | null;
    };

/** Returns a function that inspects documents, and remembers the findings about PDFs by their digests. */
export function createInspection(inspect = inspectPdf): (task: DocumentTask) => DocumentFinding {
  const pagesByDigest = new Map<string, ReturnType<typeof inspectPdf>>();
  const pdfFinding = (bytes: Buffer, digest: string) => {
    const finding = pagesByDigest.get(digest) ?? inspect(bytes);
    setNewest(pagesByDigest, digest, finding, maxRemembered);
    return finding;
  };
  return ({ form, mediaType, data: sent }) => {
    if (form === 'text') return textFinding(sent);
    const data = /\s/.test(sent) ? sent.replace(/\s+/g, '') : sent; // some encoders break the lines
    if (!isBase64(data)) return { fault: 'must be base64' };
    const bytes = Buffer.from(data, 'base64');
    const result = { digest: digestOf(bytes), data: data === sent ? null : data };
    if (mediaType === 'text/plain') {
      const fault = faultOfText(bytes);
      return fault === null ? result : { fault };
    }
    if (bytes.length > maxBinaryBytes) return { fault: 'must be at most 32 MB' };
    const finding = mediaType === 'application/pdf' ? pdfFinding(bytes, result.digest) : beginFinding(mediaType, bytes);
    return { ...finding, ...result };
  };
}

function beginFinding(mediaType: DocumentType, bytes: Buffer): { readonly fault?: string } {
  return binaryTypeOf(bytes) === mediaType ? {} : { fault: `is not a file of the type ${mediaType}` };
}

function textFinding(text: string): DocumentFinding {
  if (text.trim() === '') return { fault: 'must not be empty' };
  const bytes = Buffer.from(wellFormed(text));
  return { digest: digestOf(bytes), data: bytes.toString('base64') };
}

function faultOfText(bytes: Buffer): string | null {
  if (!isUtf8(bytes)) return 'must be a text in UTF-8';
  if (bytes.includes(0)) return 'must be a text, without NUL';
  return bytes.toString('utf8').trim() === '' ? 'must not be empty' : null;
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64');
}
