import { authenticateOperator } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { queryOf } from '../../worker/http/body.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import { auditLimitQuery } from './records.js';
import type { calls } from './shared.js';

export function createPart({ primary, authority }: WorkerCore<typeof calls>): WorkerPart {
  const getAudit: AsyncHandler = async (req, res) => {
    const limit = Number(queryOf(req, 'limit', auditLimitQuery) ?? 100);
    const { records } = await primary.call('audit', { limit });
    sendJson(res, { records, request_id: res.locals.requestId });
  };
  return { routes: [{ route: '/audit', get: [authenticateOperator(authority, 'admin'), getAudit] }] };
}
