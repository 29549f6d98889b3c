import type { Reply } from './exchange.js';

/** Resolves when the client has room for more; rejects with the signal's reason when it has gone. */
export async function write(res: Reply, piece: string | Buffer, signal: AbortSignal): Promise<void> {
  if (!res.write(piece)) await drained(res, signal);
}

function drained(res: Reply, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onDrain = () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    };
    const onAbort = () => {
      res.off('drain', onDrain);
      reject(signal.reason);
    };
    if (signal.aborted) return reject(signal.reason);
    res.once('drain', onDrain);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
