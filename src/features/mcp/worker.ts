import type { Door, WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { postMcp } from './mcp.js';
import { mcpErrors } from './messages.js';

/** Paths of the server. Some clients add a slash to the address that a user enters. */
const paths = ['/mcp', '/mcp/'];

export const mcpDoor: Door = { errorFormOf: ({ path }) => (paths.includes(path) ? mcpErrors : null) };

/** The checks before a job come after the message is read, because they do not apply to other messages. */
export function createPart({ guards, jobs }: WorkerCore): WorkerPart {
  const { mayAsk, namesUser, once, notFromJob, needsService, capped } = guards;
  const answer = postMcp(jobs, [notFromJob, needsService, capped]);
  return { routes: [{ route: '/mcp', paths, post: [mayAsk, namesUser, once, answer] }], door: mcpDoor };
}
