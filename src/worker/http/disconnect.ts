import { Cancelled } from '../../shared/errors.js';
import type { Reply } from './exchange.js';

/** A signal that is aborted when the client goes away before its answer is out; free again when disposed. */
export function untilGone(res: Reply): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const gone = () => {
    if (!res.writableFinished) controller.abort(new Cancelled('the client has gone'));
  };
  if (res.destroyed || res.socket?.destroyed) gone();
  res.once('close', gone);
  return { signal: controller.signal, [Symbol.dispose]: () => void res.off('close', gone) };
}
