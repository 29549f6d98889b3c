import type { Request } from 'express';
import { addressClient, keyClient, subClient } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Scope } from '../../shared/config/api-keys.js';
import { RelayError } from '../../shared/errors.js';
import type { WorkerKey } from '../../shared/ipc/protocol.js';
import type { AsyncHandler, Handler, Reply } from '../http/exchange.js';
import type { KeyRing, WrongKeys } from './keys.js';
import { addressOf, type LocalUsers } from './local-users.js';

/** What decides who the client is. */
export interface Authority {
  readonly keys: KeyRing;
  readonly users: Pick<LocalUsers, 'admit' | 'name'>;
  readonly wrongKeys: Pick<WrongKeys, 'count'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** Accepts a request with a key of this scope (null: of no matter which); without configured keys, all. Names the client. */
export function authenticate(authority: Authority, scope: Scope | null): AsyncHandler {
  return async (req, res, next) => {
    res.locals.client = addressClient(addressOf(req)); // set first, so that the log names it for a refused request too
    if (authority.keys.isNeeded) await checkKey(authority, req, res, scope);
    else res.locals.client = await authority.users.admit(req);
    next();
  };
}

/** For what only an operator may do. Without a configured key, nobody may. */
export function authenticateOperator(authority: Authority, scope: Scope): AsyncHandler {
  const check = authenticate(authority, scope);
  return async (req, res, next) => {
    if (authority.keys.isNeeded) return check(req, res, next);
    throw unauthorized('this needs an API key, and none is configured: set MODEL_API_KEY');
  };
}

type KeyAuthority = Pick<Authority, 'keys' | 'clock'>;

/** Whether an open route shows what this scope may see. No key, or a wrong one, is no fault there. */
export function maySee(authority: KeyAuthority, req: Request, scope: Scope): boolean {
  return !authority.keys.isNeeded || validKey(authority, req)?.scopes.includes(scope) === true;
}

/** Whether a request that was accepted with a key, or without one where none is needed, would still be. */
export function isAccepted(authority: KeyAuthority, req: Request): boolean {
  return !authority.keys.isNeeded || validKey(authority, req) !== null;
}

function validKey({ keys, clock }: KeyAuthority, req: Request): WorkerKey | null {
  const [presented, ...others] = presentedKeys(req);
  const key = presented === undefined || others.length > 0 ? null : keys.find(presented);
  return key === null || hasExpired(key, clock) ? null : key;
}

async function checkKey(authority: Authority, req: Request, res: Reply, scope: Scope | null): Promise<void> {
  const { keys, clock } = authority;
  const key = keys.find(presentedKey(req)) ?? (await refuseWrong(authority, req, res));
  res.locals.client = keyClient(key.name);
  res.locals.key = key;
  if (hasExpired(key, clock)) throw unauthorized('the API key has expired (MODEL_API_KEYS_FILE)');
  if (scope !== null && !key.scopes.includes(scope))
    throw new RelayError('forbidden', `this API key lacks the scope ${scope} (MODEL_API_KEYS_FILE)`);
}

/** Compared before: only a wrong key counts against its sender. On loopback an address would be everybody. */
async function refuseWrong({ users, wrongKeys }: Authority, req: Request, res: Reply): Promise<never> {
  res.locals.client = await users.name(req);
  await wrongKeys.count(res.locals.client);
  throw unauthorized('the API key is not valid');
}

function hasExpired({ expiresAt }: WorkerKey, clock: Pick<Clock, 'now'>): boolean {
  return expiresAt !== null && clock.now() >= expiresAt;
}

function presentedKey(req: Request): string {
  const [key, ...others] = presentedKeys(req);
  if (key === undefined) throw unauthorized('an API key is needed: send X-API-Key or Authorization: Bearer');
  if (others.length > 0) throw unauthorized('the request carries different API keys: send one');
  return key;
}

/** Different ones only. Reads every header line: of two Authorization headers, `req.headers` would show only the first. */
function presentedKeys(req: Request): string[] {
  const { 'x-api-key': plain = [], authorization = [] } = req.headersDistinct;
  const bearers = authorization.flatMap((value) => /^Bearer +(\S+) *$/i.exec(value)?.[1] ?? []);
  return [...new Set([...plain, ...bearers])];
}

function unauthorized(message: string): RelayError {
  return new RelayError('unauthorized', message);
}

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
