import { cancelled } from '../../shared/errors.js';
import type { Reply } from './exchange.js';

/** A client that follows something which goes on asks another worker. */
export const workerLeaves = cancelled('the worker ends');

/**
 * A signal that is aborted when the client goes away before its answer has been sent, until it is disposed. A client that
 * has closed only its own half counts as gone: Node would close the other half only when all data has been read. It is
 * aborted with `workerLeaves` by `closing`, too.
 */
export function untilGone(res: Reply, closing?: AbortSignal): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const { socket } = res;
  const gone = () => {
    if (!res.writableFinished) controller.abort(cancelled('the client has gone'));
  };
  const leave = () => controller.abort(workerLeaves);
  if (res.destroyed || socket?.destroyed || socket?.readableEnded) gone();
  res.once('close', gone);
  socket?.once('end', gone);
  closing?.addEventListener('abort', leave, { once: true });
  if (closing?.aborted) leave();
  const stop = () => {
    res.off('close', gone);
    socket?.off('end', gone);
    closing?.removeEventListener('abort', leave);
  };
  return { signal: controller.signal, [Symbol.dispose]: stop };
}
