import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { StoredKind } from '../../primary/features/stored-kind.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { AuditLog, maxRecords } from './audit-log.js';
import type { AuditValues, calls } from './shared.js';

export function createAudit({ MODEL_API_AUDIT_FILE: path }: AuditValues): CreatePrimaryPart {
  return ({ host }) => {
    const log = new AuditLog(path, host.clock, host.log);
    const handlers: Handlers<typeof calls> = { audit: async ({ limit }) => ({ records: await log.list(limit) }) };
    return { beforeAct: (act) => log.recordAct(act), handlers, storedKinds: [storedRecords(path)] };
  };
}

function storedRecords(path: string | null): StoredKind {
  return {
    ...{ kind: 'audit', content: 'acts of administrators, with names of keys and people' },
    ...{ place: path === null ? 'memory' : 'file', keptMs: null, readers: ['admin', 'host'] },
    until: path === null ? `until a restart: the newest ${maxRecords}` : 'until the operator removes it',
    ...{ export: 'GET /audit', deletion: null, variables: ['MODEL_API_AUDIT_FILE'] },
  };
}
