import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { AuditLog } from './audit-log.js';
import type { AuditValues, calls } from './shared.js';

export function createAudit({ MODEL_API_AUDIT_FILE: path }: AuditValues): CreatePrimaryPart {
  return ({ host }) => {
    const log = new AuditLog(path, host.clock, host.log);
    const handlers: Handlers<typeof calls> = { audit: async ({ limit }) => ({ records: await log.list(limit) }) };
    return { beforeAct: (act) => log.record(act), handlers };
  };
}
