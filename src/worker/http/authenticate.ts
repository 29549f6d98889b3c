import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';
import { RelayError } from '../../shared/errors.js';
import type { DoorSettings } from '../../shared/ipc/protocol.js';
import { addressOf } from './client-address.js';
import type { Handler } from './exchange.js';

type Keys = DoorSettings['keys'];

/** Lets a request pass that carries a configured key; without configured keys, every request. Names the client. */
export function authenticate(keys: Keys): Handler {
  return (req, res, next) => {
    const name = keys.length === 0 ? null : nameOfKey(req, keys);
    res.locals.owner = name ?? '';
    res.locals.client = name === null ? `address ${addressOf(req)}` : `key ${name}`;
    next();
  };
}

function nameOfKey(req: Request, keys: Keys): string {
  const presented = presentedKey(req);
  const digest = createHash('sha256').update(presented).digest();
  // Every key is compared, and digests have one length: the time taken tells nothing.
  const matches = keys.filter((key) => timingSafeEqual(digest, Buffer.from(key.digest, 'hex')));
  const [match] = matches;
  if (match === undefined) throw unauthorized('the API key is not valid');
  return match.name;
}

function presentedKey(req: Request): string {
  const header = req.get('x-api-key');
  const bearer = /^Bearer +(\S+) *$/i.exec(req.get('authorization') ?? '')?.[1];
  if (header !== undefined && bearer !== undefined && header !== bearer) {
    throw unauthorized('X-API-Key and Authorization carry different keys: send one');
  }
  const key = header ?? bearer;
  if (key === undefined) throw unauthorized('an API key is needed: send X-API-Key or Authorization: Bearer');
  return key;
}

export function unauthorized(message: string): RelayError {
  return new RelayError('unauthorized', message);
}
