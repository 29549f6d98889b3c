import type { Reply } from './exchange.js';
import { write } from './write.js';

/** UTF-16 units that are held before anything is sent. What is no longer has a Content-Length, and can still become an error. */
const maxHeldLength = 32 * 1024;

/**
 * Sends text as it comes, no faster than the client takes it. What fails after the first bytes were sent cuts the
 * response off.
 */
export async function sendPieces(
  res: Reply,
  headers: Readonly<Record<string, string>>,
  pieces: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<void> {
  let held = '';
  for await (const piece of pieces) {
    signal.throwIfAborted();
    held += piece;
    if (held.length <= maxHeldLength) continue;
    if (!res.headersSent) res.writeHead(200, headers);
    if (res.req.method === 'HEAD') return void res.end();
    await write(res, held, signal);
    held = '';
  }
  if (!res.headersSent) res.writeHead(200, { ...headers, 'Content-Length': Buffer.byteLength(held) });
  res.end(held);
}
