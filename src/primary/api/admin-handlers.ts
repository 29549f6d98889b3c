import type { MadeKeys } from '../access/made-keys.js';
import type { SharedHandlers } from '../workers/worker-handle.js';

type AdminCalls = 'makeKey' | 'changeKey' | 'removeKey' | 'rotateKey' | 'listKeys';

interface AdminParts {
  readonly madeKeys: Pick<MadeKeys, 'list' | 'make' | 'change' | 'remove' | 'rotate'>;
}

/** Returns the handlers for keys over HTTP. */
export function adminHandlers({ madeKeys }: AdminParts): Pick<SharedHandlers, AdminCalls> {
  return {
    makeKey: ({ by, name, options }) => madeKeys.make(by, name, options),
    changeKey: ({ by, name, options }) => madeKeys.change(by, name, options),
    removeKey: ({ by, name }) => madeKeys.remove(by, name),
    rotateKey: ({ by, name, oldUntil }) => madeKeys.rotate(by, name, oldUntil),
    listKeys: ({ by }) => ({ keys: madeKeys.list(by) }),
  };
}
