import type { Request } from 'express';
import { subClient } from '../../shared/client.js';
import type { Handler, Reply } from '../http/exchange.js';

const header = 'x-openwebui-user-id';

/** Tells the clients apart whom the holder of a key speaks for, where the key allows that: by the header, if there is one. */
export function subClientByHeader(): Handler {
  return (req, res, next) => {
    const name = nameIn(req);
    if (mayName(res) && name !== undefined) res.locals.client = subClient(res.locals.client, name);
    next();
  };
}

/** The same by the body, where the header names nobody. `name` is what the body calls its user. Returns whether that counts. */
export function subClientByBody(req: Request, res: Reply, name: string | undefined): boolean {
  if (!mayName(res) || nameIn(req) !== undefined || name === undefined || name === '') return false;
  res.locals.client = subClient(res.locals.client, name);
  return true;
}

function mayName(res: Reply): boolean {
  return res.locals.key?.hasSubclients === true;
}

function nameIn(req: Request): string | undefined {
  return req.get(header) || undefined;
}
