import type { Request } from 'express';
import { subClient } from '../../shared/client.js';
import type { TakeFromWindow } from '../http/checks.js';
import type { AsyncHandler, Handler, Reply } from '../http/exchange.js';

const header = 'x-openwebui-user-id';

/**
 * Tells the clients apart whom the holder of a key speaks for, where the key allows that: by the header before the body is
 * read, else by the body. A request is taken from the window of its client as soon as that is known.
 */
export function subClientByHeader(take: TakeFromWindow): AsyncHandler {
  return async (req, res, next) => {
    const name = nameIn(req);
    if (mayName(res) && name !== undefined) res.locals.client = subClient(res.locals.client, name);
    if (!mayName(res) || name !== undefined) await take(res);
    next();
  };
}

/** For what is read of jobs that were accepted: nothing is taken from a window. */
export function subClientReading(): Handler {
  return (req, res, next) => {
    const name = nameIn(req);
    if (mayName(res) && name !== undefined) res.locals.client = subClient(res.locals.client, name);
    next();
  };
}

/** For when the body has been read. `name` is what it calls its user. Resolves with whether that counts. */
export async function subClientByBody(
  req: Request,
  res: Reply,
  name: string | undefined,
  take: TakeFromWindow,
): Promise<boolean> {
  if (!mayName(res) || nameIn(req) !== undefined) return false;
  const isNamed = name !== undefined && name !== '';
  if (isNamed) res.locals.client = subClient(res.locals.client, name);
  await take(res);
  return isNamed;
}

function mayName(res: Reply): boolean {
  return res.locals.key?.hasSubclients === true;
}

function nameIn(req: Request): string | undefined {
  return req.get(header) || undefined;
}
