import type { Request } from 'express';
import { invalid } from '../../shared/errors.js';
import type { Handler } from '../http/exchange.js';

const name = 'Idempotency-Key';
const maxKeyLength = 255;

/** Printable ASCII, with no space at either end. */
const bareKey = /^[!-~](?:[ -~]*[!-~])?$/;
/** A string of RFC 9651: a quote and a backslash in it have a backslash before them. */
const quotedKey = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;

/** Finds the key of a request that is to run a model once, however often it is sent. */
export const findIdempotencyKey: Handler = (req, res, next) => {
  res.locals.idempotencyKey = keyOf(req);
  next();
};

/** Quoted or bare, it is the same key. null where there is none. Throws `validation_error`. */
function keyOf(req: Request): string | null {
  const [header, ...more] = valuesOf(req);
  if (header === undefined) return null;
  if (more.length > 0) throw invalid(name, 'must be sent once');
  const key = header.startsWith('"') ? quotedKey.exec(header)?.[1]?.replace(/\\(.)/g, '$1') : bareKey.exec(header)?.[0];
  if (key === undefined) throw invalid(name, 'must be printable ASCII, bare or as a quoted string');
  if (key.length < 1 || key.length > maxKeyLength) throw invalid(name, `must have 1 to ${maxKeyLength} characters`);
  return key;
}

/** As they were sent: Node joins them. */
function valuesOf({ rawHeaders }: Request): string[] {
  const isKey = (each: string) => each.length === name.length && each.toLowerCase() === name.toLowerCase();
  return rawHeaders.filter((_, index) => index % 2 === 1 && isKey(rawHeaders[index - 1] as string));
}
