import type { AuditLog } from '../access/audit-log.js';
import type { MadeKeys } from '../access/made-keys.js';
import type { SharedHandlers } from '../workers/worker-handle.js';

type AdminCalls = 'makeKey' | 'changeKey' | 'removeKey' | 'rotateKey' | 'listKeys' | 'audit';

interface AdminParts {
  readonly madeKeys: Pick<MadeKeys, 'list' | 'make' | 'change' | 'remove' | 'rotate'>;
  readonly audit: Pick<AuditLog, 'list'>;
}

/** Returns the handlers for keys over HTTP and for the records of what administrators do. */
export function adminHandlers({ madeKeys, audit }: AdminParts): Pick<SharedHandlers, AdminCalls> {
  return {
    makeKey: ({ by, name, options }) => madeKeys.make(by, name, options),
    changeKey: ({ by, name, options }) => madeKeys.change(by, name, options),
    removeKey: ({ by, name }) => madeKeys.remove(by, name),
    rotateKey: ({ by, name, oldUntil }) => madeKeys.rotate(by, name, oldUntil),
    listKeys: ({ by }) => ({ keys: madeKeys.list(by) }),
    audit: async ({ limit }) => ({ records: await audit.list(limit) }),
  };
}
