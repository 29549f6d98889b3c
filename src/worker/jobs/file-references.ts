import { maxDocuments } from '../../shared/api/ask.js';
import type { ClientText } from '../../shared/client.js';
import { invalid, RelayError } from '../../shared/errors.js';
import { isObject } from '../../shared/text/json-schema.js';
import type { Reply } from '../http/exchange.js';

/** Object of a request that refers to a file by `file_id`. */
export type Reference = Record<string, unknown>;

/** File that a request refers to, with its bytes in base64. */
interface ReferredFile {
  readonly name: string;
  readonly mediaType: string;
  readonly data: string;
}

/** How the parts of one type can refer to a file. */
export interface FileForm {
  /** Whether these parts are documents. Otherwise, they are images. */
  readonly isDocument: boolean;
  /** Path of the reference in its part; '' if the part itself refers to the file. */
  readonly path: string;
  /** Returns the reference of a part; null if the part refers to no file. */
  readonly referenceIn: (part: Reference) => Reference | null;
  /** Field of the reference that gets the file, which the client must not send. */
  readonly field: string;
  /** Adds the file to the reference, for the parser of the part. */
  readonly fill: (reference: Reference, file: ReferredFile) => void;
}

/** Forms of one API by the type of the part, or by the field of the body for the service's own API. */
export type FileForms = Readonly<Record<string, FileForm>>;

/** Reference in a request. `path`: field with the id. */
export interface FoundReference {
  readonly form: FileForm;
  readonly reference: Reference;
  readonly path: string;
}

/** Sender of a request, and the bytes of its body. */
export interface ReferringRequest {
  readonly client: ClientText;
  readonly bytes: number;
  /** Whether nobody waits for the answer any more. */
  isGone?(): boolean;
}

/** Returns the sender of a request over HTTP. */
export function senderOf(res: Reply): ReferringRequest {
  const { client, structure } = res.locals;
  return { client, bytes: structure?.bytes ?? 0, isGone: () => res.closed };
}

/** Adds the bytes of files to references. Rejects with `validation_error`, `not_found` or `payload_too_large`. */
export type ReadReferences = (found: readonly FoundReference[], sender: ReferringRequest) => Promise<void>;

/**
 * Adds the files to the parts of a checked body. Rejects with `validation_error` if the body has too many documents or
 * refers to an unsuitable file, with `not_found` if the client has no such file, and with `payload_too_large`.
 * `readFiles` is null if this service stores no files.
 */
export async function fillFiles(
  readFiles: ReadReferences | null,
  body: object,
  forms: FileForms,
  sender: ReferringRequest,
): Promise<void> {
  const found: FoundReference[] = [];
  let documents = 0;
  for (const { part, path, type = String(part.type) } of partsIn(body)) {
    const form = Object.hasOwn(forms, type) ? forms[type] : undefined;
    if (form?.isDocument && ++documents > maxDocuments)
      throw invalid(path, `is document ${documents}: a request may have ${maxDocuments}`);
    const reference = form?.referenceIn(part) ?? null;
    if (form !== undefined && reference !== null) found.push({ form, reference, path: `${path}${form.path}.file_id` });
  }
  const [first] = found;
  if (first === undefined) return;
  if (readFiles === null) throw missingFile(first.path, 'this service stores no files');
  await readFiles(found, sender);
}

/** Returns the error about a file that a request names. `path`: field with its id. */
export function missingFile(path: string, message: string): RelayError {
  return new RelayError('not_found', `${path}: ${message}`, { details: [{ path, message }] });
}

interface FoundPart {
  readonly part: Reference;
  readonly path: string;
  /** Type of a part that names none. */
  readonly type?: string;
}

/**
 * Returns the objects in the lists of a body, and the parts of all messages. The messages of the model are skipped,
 * because their files are ignored.
 */
function partsIn(body: object): FoundPart[] {
  const found: FoundPart[] = [];
  for (const type of ['images', 'files'] as const)
    for (const { part, path } of objectsIn((body as Reference)[type], type)) found.push({ part, path, type });
  for (const field of ['messages', 'input'] as const) {
    for (const { part: message, path } of objectsIn((body as Reference)[field], field)) {
      if (message.role === 'assistant') continue;
      addParts(found, message.content, `${path}.content`);
      addParts(found, message.output, `${path}.output`);
    }
  }
  return found;
}

/**
 * Adds parts with the parts in them: results of tools, and documents that are lists of parts, contain others. A generator
 * would pass each part through all levels around it.
 */
function addParts(found: FoundPart[], content: unknown, path: string): void {
  for (const each of objectsIn(content, path)) {
    found.push(each);
    const { content: inner, source } = each.part;
    addParts(found, inner, `${each.path}.content`);
    if (isObject(source)) addParts(found, source.content, `${each.path}.source.content`);
  }
}

function* objectsIn(list: unknown, path: string): Generator<FoundPart> {
  if (!Array.isArray(list)) return;
  for (const [index, part] of list.entries()) if (isObject(part)) yield { part, path: `${path}.${index}` };
}
