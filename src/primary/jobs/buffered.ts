import { Inbox } from '../../shared/inbox.js';

/**
 * Lets a source run up to `limit` items ahead of its reader. Once the signal is aborted the source is no longer held
 * back: it comes to its end, and gives back what it holds, even if nobody ever reads on.
 */
export function buffered<T>(source: AsyncIterable<T>, signal: AbortSignal, limit: number): AsyncIterableIterator<T> {
  const inbox = new Inbox<T>(limit);
  void pump(source, inbox, signal);
  return inbox;
}

async function pump<T>(source: AsyncIterable<T>, inbox: Inbox<T>, signal: AbortSignal): Promise<void> {
  const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  try {
    for await (const item of source) {
      inbox.push(item);
      if (inbox.full && !signal.aborted) await Promise.race([inbox.room(), aborted]);
    }
    inbox.finish();
  } catch (error) {
    inbox.fail(error);
  }
}
