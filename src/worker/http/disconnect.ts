import { cancelled } from '../../shared/errors.js';
import type { Reply } from './exchange.js';

/**
 * A signal that is aborted when the client goes away before its answer has been sent, until it is disposed. A client that
 * has closed only its own half counts as gone: Node would close the other half only when all data has been read.
 */
export function untilGone(res: Reply): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const { socket } = res;
  const gone = () => {
    if (!res.writableFinished) controller.abort(cancelled('the client has gone'));
  };
  if (res.destroyed || socket?.destroyed || socket?.readableEnded) gone();
  res.once('close', gone);
  socket?.once('end', gone);
  const stop = () => {
    res.off('close', gone);
    socket?.off('end', gone);
  };
  return { signal: controller.signal, [Symbol.dispose]: stop };
}
