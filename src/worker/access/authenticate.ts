import { readFile } from 'node:fs/promises';
import { isIP, type Socket } from 'node:net';
import type { Express, Request } from 'express';
import { addressClient, keyClient, subClient, userClient } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Scope } from '../../shared/config/api-keys.js';
import { RelayError } from '../../shared/errors.js';
import type { WorkerKey, WorkerSettings } from '../../shared/ipc/protocol.js';
import { isUnixSocket } from '../../shared/node-internals/connections.js';
import type { PeerCredentials } from '../../shared/node-internals/peer-credentials.js';
import type { AsyncHandler, Handler, Primary, Reply } from '../http/exchange.js';
import type { KeyRing, WrongKeys } from './keys.js';
import type { SocketTable, UserNames } from './user-tables.js';

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

/** For what only an operator may do. Without a configured key, every request is refused. */
export function authenticateOperator(authority: Authority, scope: Scope): AsyncHandler {
  const check = authenticate(authority, scope);
  return async (req, res, next) => {
    if (authority.keys.isNeeded) return check(req, res, next);
    throw unauthorized('this needs an API key, and none is configured: set MODEL_API_KEY');
  };
}

type KeyAuthority = Pick<Authority, 'keys' | 'clock'>;

/** Of a request that was accepted. Without configured keys, nobody is one. */
export function isAdmin({ locals }: Reply): boolean {
  return locals.key?.scopes.includes('admin') === true;
}

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
  if (hasExpired(key, clock)) throw unauthorized('the API key has expired: ask the operator for a new one');
  if (scope !== null && !key.scopes.includes(scope))
    throw new RelayError('forbidden', `this API key lacks the scope ${scope}: ask the operator for it`);
}

/** Counts a wrong key against its sender: the local user if known, because all users share the address of loopback. */
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
  return [...new Set([...plain, ...bearers])].filter((key) => key !== ''); // some clients send an empty X-API-Key beside it
}

function unauthorized(message: string): RelayError {
  return new RelayError('unauthorized', message);
}

const header = 'x-openwebui-user-id';

/** Sets the client to the sub-client that the header names, if the key allows sub-clients. */
export function subClientByHeader(): Handler {
  return (req, res, next) => {
    const name = nameIn(req);
    if (mayName(res) && name !== undefined) res.locals.client = subClient(res.locals.client, name);
    next();
  };
}

/** The same by the name of the user in the body, if the header names none. Returns whether that name is used. */
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

interface LocalUser {
  readonly uid: number;
  readonly name: string;
}

/** Where the user of a connection is found. */
export interface UserSources {
  readonly table: Pick<SocketTable, 'uidOf'>;
  readonly credentials: Pick<PeerCredentials, 'uidOf'>;
  readonly names: Pick<UserNames, 'nameOf'>;
}

/** Owns what is known of the users at the other ends of this worker's connections. Each is searched once. */
export class LocalUsers {
  readonly #settings: Pick<WorkerSettings, 'localUsers' | 'allowedUsers'>;
  readonly #sources: UserSources;
  readonly #known = new WeakMap<Socket, Promise<LocalUser | null>>();

  constructor(settings: Pick<WorkerSettings, 'localUsers' | 'allowedUsers'>, sources: UserSources) {
    this.#settings = settings;
    this.#sources = sources;
  }

  /** The client of a request without a key: its local user, else its address. Throws `forbidden` if it may not call. */
  async admit(req: Request): Promise<string> {
    const { localUsers, allowedUsers } = this.#settings;
    const user = await this.#userOf(req);
    if (allowedUsers.length > 0 && !isAmong(allowedUsers, user)) {
      throw forbidden(
        `${user === null ? 'this caller' : `the user ${user.name}`} is not among MODEL_API_ALLOWED_USERS`,
      );
    }
    if (user === null && localUsers === 'require') throw forbidden(unnamed);
    return clientOf(user, req);
  }

  /** The same, also for a client that may not call. */
  async name(req: Request): Promise<string> {
    return clientOf(await this.#userOf(req), req);
  }

  /** Null for a proxy that is trusted: it speaks for others, and says for which address. */
  async #userOf(req: Request): Promise<LocalUser | null> {
    if (this.#settings.localUsers === 'off' || isTrustedProxy(req)) return null;
    const { socket } = req;
    const known = this.#known.get(socket) ?? this.#lookUp(socket);
    this.#known.set(socket, known);
    return known;
  }

  async #lookUp(socket: Socket): Promise<LocalUser | null> {
    const uid = await this.#uidOf(socket).catch(() => null); // for want of /proc, or of descriptors
    if (uid === null || (uid === overflowUid && (await isMapped()))) return null;
    return { uid, name: await this.#sources.names.nameOf(uid) };
  }

  async #uidOf(socket: Socket): Promise<number | null> {
    const { table, credentials } = this.#sources;
    const { localAddress, localPort, remoteAddress, remotePort } = socket;
    if (isUnixSocket(socket)) return credentials.uidOf(socket);
    if (!localAddress || !localPort || !remoteAddress || !remotePort) return null; // it has gone
    return table.uidOf({ localAddress, localPort, remoteAddress, remotePort });
  }
}

/**
 * Has the primary count each open connection of a Unix socket for its user: a connection costs its user nothing, and the
 * worker a descriptor.
 */
export class ConnectionLimit {
  readonly #primary: Pick<Primary, 'stream'>;
  readonly #credentials: Pick<PeerCredentials, 'uidOf'>;

  constructor(primary: Pick<Primary, 'stream'>, credentials: Pick<PeerCredentials, 'uidOf'>) {
    this.#primary = primary;
    this.#credentials = credentials;
  }

  /** Resolves with whether it may stay. It may if the primary gives no answer. */
  async admit(socket: Socket): Promise<boolean> {
    const uid = await this.#credentials.uidOf(socket);
    if (socket.destroyed) return false;
    const counted = this.#primary.stream('connection', { uid });
    socket.once('close', () => void counted.return(undefined).catch(() => {}));
    const first = await counted.next().catch(() => null);
    return first?.done === false ? first.value.isAllowed : true;
  }
}

function clientOf(user: LocalUser | null, req: Request): string {
  return user === null ? addressClient(addressOf(req)) : userClient(user.name);
}

const unnamed =
  'this caller cannot be named: MODEL_API_LOCAL_USERS is require, so calls must come from a user of this machine';

function forbidden(message: string): RelayError {
  return new RelayError('forbidden', message);
}

/** An entry of digits is a uid, and no name. */
function isAmong(allowed: readonly string[], user: LocalUser | null): boolean {
  return user !== null && allowed.some((entry) => entry === (/^\d+$/.test(entry) ? String(user.uid) : user.name));
}

type TrustOfProxy = (address: string | undefined, hops: number) => boolean;

/** These addresses and blocks are proxies, also where one of them is written with its port. */
export function trustProxies(app: Express, proxies: readonly string[]): void {
  app.set('trust proxy', proxies);
  const isTrusted = app.get('trust proxy fn') as TrustOfProxy;
  const isTrustedBare: TrustOfProxy = (address, hops) => isTrusted(address && bareAddress(address), hops);
  app.set('trust proxy', isTrustedBare);
}

function isTrustedProxy(req: Request): boolean {
  const isTrusted = req.app.get('trust proxy fn') as TrustOfProxy;
  return isTrusted(req.socket.remoteAddress, 0);
}

/** In a user namespace, this uid stands for every user who has none there. */
const overflowUid = 65_534;

async function isMapped(): Promise<boolean> {
  const map = await readFile('/proc/self/uid_map', 'latin1');
  return !/^\s*0\s+0\s+4294967295\s*$/.test(map);
}

/** Every local user can call from any of the sixteen million addresses of loopback, so all of them count as this one. */
const loopback = '127.0.0.1';

/**
 * The address that a request came from: the peer's, or what a trusted proxy says (express's `trust proxy`). An IPv4
 * address mapped into IPv6 counts as IPv4. An IPv6 client counts by its /64, which is what one site gets.
 */
export function addressOf(req: Request): string {
  const named = bareAddress(req.ip ?? '');
  const address = isIP(named) === 0 ? lastProxyOf(req) : named;
  const plain = isIP(address) === 6 ? networkOf(groupsOf(address.replace(/%.*$/, ''))) : address;
  return isIP(plain) === 4 && plain.startsWith('127.') ? loopback : plain;
}

/** Of the proxies that are trusted, the farthest one: it does not know its client. */
function lastProxyOf(req: Request): string {
  return req.ips?.map(bareAddress).find((address) => isIP(address) !== 0) ?? req.socket.remoteAddress ?? 'local';
}

const withPort = /^(?:\[([^\]]*)\](?::\d+)?|((?:::ffff:)?\d+\.\d+\.\d+\.\d+):\d+)$/i;

/** Some proxies add the port, brackets or quotes. */
function bareAddress(named: string): string {
  const [, unquoted = named] = /^\s*"?([^"]*?)"?\s*$/.exec(named) ?? [];
  const [, bracketed, dotted] = withPort.exec(unquoted) ?? [];
  return bracketed ?? dotted ?? unquoted;
}

function networkOf(groups: readonly number[]): string {
  const [high = 0, low = 0] = groups.slice(6);
  const isInFirstNetwork = groups.slice(0, 5).every((group) => group === 0);
  if (isInFirstNetwork && groups[5] === 0xffff) return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  if (isInFirstNetwork && groups[5] === 0 && high === 0 && low === 1) return loopback;
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = address.split('::', 2);
  const left = written(head);
  const right = tail === undefined ? [] : written(tail);
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => 0);
  return [...left, ...zeros, ...right];
}

/** A dotted end stands for two groups. */
function written(text: string): number[] {
  return text === ''
    ? []
    : text.split(':').flatMap((group) => (group.includes('.') ? pairOf(group) : [Number.parseInt(group, 16)]));
}

function pairOf(dotted: string): [number, number] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}
