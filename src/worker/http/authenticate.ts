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
    res.locals.client = `address ${addressOf(req)}`; // also of who is refused: the log tells it
    if (keys.length === 0) return next();
    const name = nameOfKey(req, keys);
    res.locals.owner = name;
    res.locals.client = `key ${name}`;
    next();
  };
}

/** For what an operator alone may do: without a configured key, nobody may. */
export function authenticateOperator(keys: Keys): Handler {
  if (keys.length > 0) return authenticate(keys);
  return () => {
    throw unauthorized('this needs an API key, and none is configured: set MODEL_API_KEY');
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

/** Looks at every header line: of a doubled Authorization, `req.headers` would show only the first. */
function presentedKey(req: Request): string {
  const { 'x-api-key': plain = [], authorization = [] } = req.headersDistinct;
  const bearers = authorization.flatMap((value) => /^Bearer +(\S+) *$/i.exec(value)?.[1] ?? []);
  const [key, ...others] = new Set([...plain, ...bearers]);
  if (key === undefined) throw unauthorized('an API key is needed: send X-API-Key or Authorization: Bearer');
  if (others.length > 0) throw unauthorized('the request carries different API keys: send one');
  return key;
}

function unauthorized(message: string): RelayError {
  return new RelayError('unauthorized', message);
}
