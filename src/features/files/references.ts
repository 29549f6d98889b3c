import { isUtf8 } from 'node:buffer';
import { isImage } from '../../shared/api/ask.js';
import { inLine, inLines } from '../../shared/async.js';
import { holderOf } from '../../shared/client.js';
import { cancelled, invalid, RelayError } from '../../shared/errors.js';
import type { FileView } from '../../shared/files.js';
import { imageTypes } from '../../shared/job.js';
import { binaryTypeOf, isPdf, maxBinaryBytes } from '../../shared/tables/document-types.js';
import type { FoundReference, Reference, ReferringRequest } from '../../worker/jobs/file-references.js';
import { findUserFile, readWholeFile } from './content.js';
import type { FileCalls } from './shared.js';

/** Adds the bytes of files to the references in requests. Reads the files of one request at a time. */
export class FileReader {
  readonly #primary: FileCalls;
  readonly #limitBytes: number;
  readonly #inLine = inLine();
  readonly #inLineOf = inLines();

  /** `limitBytes`: largest size of a body together with its files. */
  constructor(primary: FileCalls, limitBytes: number) {
    this.#primary = primary;
    this.#limitBytes = limitBytes;
  }

  /**
   * Adds the files to these references. Rejects with `validation_error` if a file is unsuitable, with `not_found` if the
   * client has no such file, and with `payload_too_large`.
   */
  async read(found: readonly FoundReference[], sender: ReferringRequest): Promise<void> {
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
      if (total > this.#limitBytes) throw tooLarge(this.#limitBytes);
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
