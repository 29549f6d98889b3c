import type { ClientText } from '../../shared/client.js';
import { invalid, RelayError } from '../../shared/errors.js';
import type { FileView } from '../../shared/files.js';
import type { Reply } from '../../worker/http/exchange.js';
import { untilGone, write } from '../../worker/http/responses.js';
import { missingFile } from '../../worker/jobs/file-references.js';
import type { FileCalls } from './shared.js';

/**
 * Finds a file of the purpose user_data for a request of its client. Rejects with `not_found`, and with
 * `validation_error` if the file has another purpose. `path`: field of the request.
 */
export async function findUserFile(
  primary: FileCalls,
  id: string,
  client: ClientText,
  path: string,
): Promise<FileView> {
  const file = await primary.call('file', { id, client }).catch((error: unknown) => {
    throw missingIn(path, error);
  });
  if (file.purpose === 'user_data') return file;
  throw invalid(path, `must be a file of the purpose user_data, and this one has ${file.purpose}`);
}

/** Reads a whole file. Rejects with `not_found` if the file was removed. `path`: field of the request. */
export async function readWholeFile(primary: FileCalls, id: string, client: ClientText, path: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  try {
    for await (const piece of filePieces(primary, id, client)) pieces.push(piece);
  } catch (error) {
    throw missingIn(path, error);
  }
  return Buffer.concat(pieces);
}

/** Names the field in an error about a missing file, or about files that are switched off. */
function missingIn(path: string, error: unknown): unknown {
  if (!(error instanceof RelayError) || error.code !== 'not_found') return error;
  return missingFile(path, error.message);
}

/** Yields the bytes of a file, or a part of them. */
export async function* filePieces(
  primary: FileCalls,
  id: string,
  client: ClientText,
  { start, end }: { readonly start: number; readonly end?: number } = { start: 0 },
): AsyncGenerator<Buffer> {
  for (let from = start; from !== end; ) {
    const { data } = await primary.call('filePiece', { id, client, from, ...(end !== undefined && { to: end }) });
    if (data === '') return;
    const piece = Buffer.from(data, 'base64');
    from += piece.length;
    yield piece;
  }
}

/** Sends the bytes of a file as a download. */
export async function sendFile(
  primary: FileCalls,
  res: Reply,
  { id, client, bytes }: { readonly id: string; readonly client: ClientText; readonly bytes: number },
  type: string,
): Promise<void> {
  using caller = untilGone(res);
  res.writeHead(200, { 'Content-Type': type, 'Content-Length': bytes, 'Content-Disposition': 'attachment' });
  if (res.req.method !== 'HEAD')
    for await (const piece of filePieces(primary, id, client)) await write(res, piece, caller.signal);
  res.end();
}
