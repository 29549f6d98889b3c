import type { Request } from 'express';
import { invalid } from '../../shared/errors.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendTyped, sendWritten } from '../../worker/http/responses.js';
import { usageCsv } from './csv.js';
import {
  defaultGroups,
  groupsForm,
  periodForm,
  readGroups,
  readPeriodDay,
  type UsageGroup,
  type UsageReport,
} from './report-form.js';
import { type calls, route } from './shared.js';

export function createPart({ primary, guards }: WorkerCore<typeof calls>): WorkerPart {
  return { routes: [{ route, get: [guards.mayCall, getUsage(primary)] }] };
}

/** Returns the usage of all clients to a key with the scope `admin`, otherwise of the client, as JSON or CSV. */
function getUsage(primary: WorkerCore<typeof calls>['primary']): AsyncHandler {
  return async (req, res) => {
    const { since, until } = periodOf(req.query);
    const groups = groupsOf(req.query);
    const order = { client: res.locals.client, scopes: res.locals.key?.scopes ?? null, since, until, groups };
    const { text } = await primary.call('usage', order);
    if (req.accepts(['application/json', 'text/csv']) !== 'text/csv') return sendWritten(res, text);
    sendTyped(res, 'text/csv; charset=utf-8', usageCsv((JSON.parse(text) as UsageReport).usage, groups));
  };
}

/** Returns the first and last day. `since` and `until` are the names that earlier versions know. */
function periodOf(query: Request['query']): { since: string | null; until: string | null } {
  const [first, last] = [nameOf(query, 'from', 'since'), nameOf(query, 'to', 'until')];
  const [since, until] = [dayOf(query, first, 'first'), dayOf(query, last, 'last')];
  if (since !== null && until !== null && until < since) throw invalid(last, `must not be before ${first}`);
  return { since, until };
}

function nameOf(query: Request['query'], name: string, earlierName: string): string {
  if (query[earlierName] === undefined) return name;
  if (query[name] !== undefined) throw invalid(name, `must not be sent with ${earlierName}, which means the same`);
  return earlierName;
}

function dayOf(query: Request['query'], name: string, end: 'first' | 'last'): string | null {
  const value = query[name];
  if (value === undefined) return null;
  const day = typeof value === 'string' ? readPeriodDay(value, end) : null;
  if (day === null) throw invalid(name, periodForm);
  return day;
}

function groupsOf({ group }: Request['query']): readonly UsageGroup[] {
  if (group === undefined) return defaultGroups;
  const groups = typeof group === 'string' ? readGroups(group) : null;
  if (groups === null) throw invalid('group', groupsForm);
  return groups;
}
