import { Cancelled } from '../../shared/errors.js';
import type { Reply } from './exchange.js';

/**
 * A signal that is aborted when the client goes away before its answer is out; free again when disposed. Half of a
 * connection is none: Node closes the other half, but waits with it until a reader that may never read has read.
 */
export function untilGone(res: Reply): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const { socket } = res;
  const gone = () => {
    if (!res.writableFinished) controller.abort(new Cancelled('the client has gone'));
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
