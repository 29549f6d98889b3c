import { isUtf8 } from 'node:buffer';
import { isImage, maxDocuments } from '../../shared/api/ask.js';
import { inLine, inLines } from '../../shared/async.js';
import { holderOf } from '../../shared/client.js';
import { cancelled, invalid, RelayError } from '../../shared/errors.js';
import type { FileView } from '../../shared/files.js';
import { imageTypes } from '../../shared/job.js';
import { binaryTypeOf, isPdf, maxBinaryBytes } from '../../shared/tables/document-types.js';
import { isObject } from '../../shared/text/json-schema.js';
import { findUserFile, readWholeFile } from '../files/content.js';
import type { Primary, Reply } from '../http/exchange.js';

/** Object of a request that refers to a file by `file_id`. */
export type Reference = Record<string, unknown>;

/** File that a request refers to, with its bytes in base64. */
type ReferredFile = Pick<FileView, 'name' | 'mediaType'> & { readonly data: string };

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

interface FoundReference {
  readonly form: FileForm;
  readonly reference: Reference;
  readonly path: string;
}

/** Sender of a request, and the bytes of its body. */
interface ReferringRequest {
  readonly client: string;
  readonly bytes: number;
  /** Whether nobody waits for the answer any more. */
  isGone?(): boolean;
}

/** Returns the sender of a request over HTTP. */
export function senderOf(res: Reply): ReferringRequest {
  const { client, structure } = res.locals;
  return { client, bytes: structure?.bytes ?? 0, isGone: () => res.closed };
}

/** Adds the bytes of files to the requests that refer to them. Reads the files of one request at a time. */
export class FileReferences {
  readonly #primary: Primary;
  readonly #limitBytes: () => number;
  readonly #inLine = inLine();
  readonly #inLineOf = inLines();

  /** `limitBytes` returns the largest size of a body together with its files. */
  constructor(primary: Primary, limitBytes: () => number) {
    this.#primary = primary;
    this.#limitBytes = limitBytes;
  }

  /**
   * Adds the files to the parts of a checked body. Rejects with `validation_error` if the body has too many documents or
   * refers to an unsuitable file, with `not_found` if the client has no such file, and with `payload_too_large`.
   */
  async fill(body: object, forms: FileForms, sender: ReferringRequest): Promise<void> {
    const found: FoundReference[] = [];
    let documents = 0;
    for (const { part, path, type = String(part.type) } of partsIn(body)) {
      const form = Object.hasOwn(forms, type) ? forms[type] : undefined;
      if (form?.isDocument && ++documents > maxDocuments)
        throw invalid(path, `is document ${documents}: a request may have ${maxDocuments}`);
      const reference = form?.referenceIn(part) ?? null;
      if (form !== undefined && reference !== null)
        found.push({ form, reference, path: `${path}${form.path}.file_id` });
    }
    if (found.length === 0) return;
    // The requests of a key holder take turns, and so do the holders, however many sub-clients one has.
    await this.#inLineOf(holderOf(sender.client), () => this.#inLine(() => this.#readAll(found, sender)));
  }

  async #readAll(found: readonly FoundReference[], { client, bytes, isGone }: ReferringRequest): Promise<void> {
    if (isGone?.()) throw cancelled('the client has disconnected');
    const views = new Map<string, FileView>();
    let total = bytes;
    for (const { form, reference, path } of found) {
      const id = idIn(reference, path);
      if (reference[form.field] != null) throw invalid(path, `must not be sent together with ${form.field}`);
      const view = views.get(id) ?? (await findUserFile(this.#primary, id, client, path));
      if (view.bytes > maxBinaryBytes) throw invalid(path, 'must be a file of at most 32 MB');
      views.set(id, view);
      total += base64Length(view.bytes);
      if (total > this.#limitBytes()) throw tooLarge(this.#limitBytes());
    }
    const files = new Map<string, TypedFile>();
    for (const { form, reference, path } of found) {
      const id = idIn(reference, path);
      const { name = '', mediaType = '' } = views.get(id) ?? {};
      const file = files.get(id) ?? typedFile(await readWholeFile(this.#primary, id, client, path), mediaType);
      files.set(id, file);
      const type = form.isDocument ? file.documentType : file.imageType;
      form.fill(reference, { name, mediaType: type, data: file.data });
    }
  }
}

/** Bytes of a file in base64, and its type as a document and as an image. */
interface TypedFile {
  readonly data: string;
  readonly documentType: string;
  readonly imageType: string;
}

function typedFile(bytes: Buffer, named: string): TypedFile {
  const imageType = imageTypes.find((type) => isImage(type, bytes)) ?? unknownType;
  return { data: bytes.toString('base64'), documentType: documentType(bytes, named), imageType };
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

function idIn({ file_id: id }: Reference, path: string): string {
  if (typeof id !== 'string') throw invalid(path, id == null ? 'must be sent' : 'must be a string');
  return id;
}

function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

function tooLarge(limitBytes: number): RelayError {
  const message = `the body is larger than ${limitBytes} bytes including the files that it refers to (MODEL_API_BODY_LIMIT)`;
  return new RelayError('payload_too_large', message);
}

/** Type of files whose uploader has named none that a data URL can have. */
const unknownType = 'application/octet-stream';

/** Returns the type of a document, by its bytes if the client has not named the type of the file. */
function documentType(bytes: Buffer, named: string): string {
  const binary = isPdf(bytes) ? 'application/pdf' : binaryTypeOf(bytes);
  if (binary !== null) return binary;
  const [type = unknownType] = /^[a-z]+\/[a-z0-9.+-]+/.exec(named.toLowerCase()) ?? [];
  return type === unknownType && isUtf8(bytes) ? 'text/plain' : type;
}
