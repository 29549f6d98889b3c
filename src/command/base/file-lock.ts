import { createHash } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Locks a path for one kind of work; null if another process has the lock. The lock is an abstract Unix socket: the
 * kernel removes it when the process ends in any way, whereas a lock file would remain.
 */
export async function lockFor(work: string, path: string): Promise<Disposable | null> {
  const digest = createHash('sha256').update(path).digest('hex').slice(0, 32);
  const server = createServer();
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(`\0prompt-relay-${work}-${digest}`, () => resolve(true));
  });
  server.unref();
  return isFree ? { [Symbol.dispose]: () => void server.close() } : null;
}
