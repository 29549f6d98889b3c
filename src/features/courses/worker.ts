import type { Request } from 'express';
import { RelayError } from '../../shared/errors.js';
import { actorOf, authenticateOperator } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { readBody } from '../../worker/http/body.js';
import type { AsyncHandler, Reply } from '../../worker/http/exchange.js';
import { sendJson, sendTyped } from '../../worker/http/responses.js';
import { reportCsv } from './report.js';
import { type calls, enrolRequest, limitRequest } from './shared.js';

type Core = WorkerCore<typeof calls>;

export function createPart(core: Core): WorkerPart {
  const authenticated = authenticateOperator(core.authority, null);
  const may: AsyncHandler = (req, res, next) =>
    authenticated(req, res, () => {
      if (res.locals.key?.lentId !== undefined) throw new RelayError('forbidden', 'a lent key administers no course');
      next();
    });
  return {
    routes: [
      { route: '/courses', get: [may, getCourses(core)] },
      { route: '/courses/{course}', get: [may, getCourse(core)] },
      { route: '/courses/{course}/report', get: [may, getReport(core)] },
      { route: '/courses/{course}/members', post: [may, postMembers(core)] },
      {
        route: '/courses/{course}/members/{member}',
        patch: [may, patchMember(core)],
        delete: [may, deleteMember(core)],
      },
    ],
  };
}

function orderOf(req: Request, res: Reply) {
  return { by: actorOf(res), course: String(req.params.course) };
}

function getCourses({ primary }: Core): AsyncHandler {
  return async (_req, res) => answer(res, await primary.call('listCourses', { by: actorOf(res) }));
}

function getCourse({ primary }: Core): AsyncHandler {
  return async (req, res) => answer(res, await primary.call('showCourse', orderOf(req, res)));
}

function getReport({ primary }: Core): AsyncHandler {
  return async (req, res) => {
    const detail = await primary.call('showCourse', orderOf(req, res));
    sendTyped(res, 'text/csv; charset=utf-8', reportCsv(detail));
  };
}

function postMembers({ primary, jobs }: Core): AsyncHandler {
  return async (req, res) => {
    const { logins, ...options } = await readBody(req, res, jobs.bodies, enrolRequest);
    const order = { ...orderOf(req, res), logins, options: textsIn(options) };
    answer(res, await changing(res, () => primary.call('enrolMembers', order)), 201);
  };
}

function patchMember({ primary, jobs }: Core): AsyncHandler {
  return async (req, res) => {
    const options = textsIn(await readBody(req, res, jobs.bodies, limitRequest));
    const order = { ...orderOf(req, res), member: String(req.params.member), options };
    answer(res, await changing(res, () => primary.call('limitMember', order)));
  };
}

function deleteMember({ primary }: Core): AsyncHandler {
  return async (req, res) => {
    const order = { ...orderOf(req, res), member: String(req.params.member) };
    await changing(res, () => primary.call('removeMember', order));
    answer(res, { success: true });
  };
}

/** Changes keys. The answer is sent although the change may end the access of the key that asked for it. */
function changing<T>(res: Reply, change: () => Promise<T>): Promise<T> {
  res.locals.changesKeys = true;
  return change();
}

function answer(res: Reply, body: object, status = 200): void {
  sendJson(res, { ...body, request_id: res.locals.requestId }, status);
}

/** Returns the texts of options in a body; null for an option to remove. */
function textsIn(body: Readonly<Record<string, string | readonly string[] | null | undefined>>) {
  const texts = Object.entries(body).flatMap(([name, value]): [string, string | null][] => {
    if (value === undefined) return [];
    return [[name, typeof value === 'string' || value === null ? value : value.join('+')]];
  });
  return Object.fromEntries(texts);
}
