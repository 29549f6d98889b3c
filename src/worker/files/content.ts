import { invalid, RelayError } from '../../shared/errors.js';
import type { FileView } from '../../shared/files.js';
import type { Primary, Reply } from '../http/exchange.js';
import { untilGone, write } from '../http/responses.js';

/** Bytes of a file that a user has uploaded, as a request can refer to them. */
export interface FileContent extends Pick<FileView, 'name' | 'mediaType'> {
  readonly data: Buffer;
}

/**
 * Reads a file of the purpose user_data for a request of its client. Rejects with `not_found`, and with
 * `validation_error` if it has more than `maxBytes` or another purpose. `path`: field of the request.
 */
export async function readUserFile(
  primary: Primary,
  id: string,
  client: string,
  { maxBytes, path }: { readonly maxBytes: number; readonly path: string },
): Promise<FileContent> {
  const { purpose, bytes, name, mediaType } = await primary.call('file', { id, client }).catch((error: unknown) => {
    throw isMissing(error) ? invalid(path, 'is no file of this client') : error;
  });
  if (purpose !== 'user_data')
    throw invalid(path, `must be a file of the purpose user_data, and this one has ${purpose}`);
  if (bytes > maxBytes) throw invalid(path, `has ${bytes} bytes, and may have ${maxBytes}`);
  const pieces: Buffer[] = [];
  for await (const piece of filePieces(primary, id, client)) pieces.push(piece);
  return { data: Buffer.concat(pieces), name, mediaType };
}

function isMissing(error: unknown): boolean {
  return error instanceof RelayError && error.code === 'not_found';
}

/** Yields the bytes of a file. */
export async function* filePieces(primary: Primary, id: string, client: string): AsyncGenerator<Buffer> {
  for (let from = 0; ; ) {
    const { data } = await primary.call('filePiece', { id, client, from });
    if (data === '') return;
    const piece = Buffer.from(data, 'base64');
    from += piece.length;
    yield piece;
  }
}

/** Sends the bytes of a file as a download. */
export async function sendFile(
  primary: Primary,
  res: Reply,
  { id, client, bytes }: { readonly id: string; readonly client: string; readonly bytes: number },
  type: string,
): Promise<void> {
  using caller = untilGone(res);
  res.writeHead(200, { 'Content-Type': type, 'Content-Length': bytes, 'Content-Disposition': 'attachment' });
  if (res.req.method !== 'HEAD')
    for await (const piece of filePieces(primary, id, client)) await write(res, piece, caller.signal);
  res.end();
}
