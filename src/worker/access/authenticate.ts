import { isIP, type Socket } from 'node:net';
import type { Express, Request } from 'express';
import { addressClient, type ClientText, ssoClient, subClient } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import { isRefused, type Scope } from '../../shared/config/api-keys.js';
import { RelayError } from '../../shared/errors.js';
import type { Actor, ClientRights } from '../../shared/ipc/protocol.js';
import type { PeerCredentials } from '../../shared/node-internals/peer-credentials.js';
import type { AsyncHandler, Handler, Primary, Reply } from '../http/exchange.js';
import type { KeyRing, WrongKeys } from './keys.js';
import type { OpenRequests } from './open-requests.js';
import type { PersonSource } from './people.js';

/** Parts that decide which client a request belongs to. */
export interface Authority {
  readonly keys: KeyRing;
  readonly users: Pick<UserSource, 'admitCaller' | 'name'>;
  readonly wrongKeys: Pick<WrongKeys, 'count'>;
  /** Returns the feature that identifies people; null if there is none. */
  readonly peopleOf: () => Pick<PersonSource, 'personOf' | 'report'> | null;
  readonly openRequests: Pick<OpenRequests, 'watch'>;
  readonly clock: Pick<Clock, 'now'>;
}

/**
 * Accepts a request if its API key or its person has this scope, and sets its client. With `scope` null, a valid key or
 * a known person is enough. If the service has neither keys nor people, accepts every request.
 */
export function authenticate(authority: Authority, scope: Scope | null): AsyncHandler {
  return async (req, res, next) => {
    // The log names the client of a refused request, too.
    res.locals.client = addressClient(addressOf(req));
    if (authority.keys.isNeeded) await acceptRights(authority, req, res, scope);
    else res.locals.client = await authority.users.admitCaller(req);
    next();
  };
}

async function acceptRights(authority: Authority, req: Request, res: Reply, scope: Scope | null): Promise<void> {
  const rights = await identify(authority, req, res);
  checkRights(rights, authority.clock, scope);
  authority.openRequests.watch(res, rights.expiresAt, () => {
    const now = validRights(authority, req);
    return now !== null && (scope === null || now.scopes.includes(scope));
  });
}

/** Guards operator routes: without a configured key, every request is refused, too. */
export function authenticateOperator(authority: Authority, scope: Scope | null): AsyncHandler {
  const check = authenticate(authority, scope);
  return async (req, res, next) => {
    if (authority.keys.isNeeded) return check(req, res, next);
    throw unauthorized('this request needs an API key, and none is configured: set MODEL_API_KEY');
  };
}

type KeyAuthority = Pick<Authority, 'keys' | 'clock' | 'peopleOf'>;

/** Whether an accepted request has the scope `admin`; false if no keys are configured. */
export function isAdmin({ locals }: Reply): boolean {
  return locals.key?.scopes.includes('admin') === true;
}

/** Returns the client of a request as the actor that manages keys or acts as an administrator. */
export function actorOf(res: Reply): Actor {
  const { client, requestId } = res.locals;
  return { client, isAdmin: isAdmin(res), requestId };
}

/** Whether an unauthenticated route may show data of this scope. Missing and wrong keys cause no errors. */
export function maySee(authority: KeyAuthority, req: Request, scope: Scope): boolean {
  return !authority.keys.isNeeded || validRights(authority, req)?.scopes.includes(scope) === true;
}

/** Whether the key or the person of an earlier accepted request is still valid; true if no keys are configured. */
export function isAccepted(authority: KeyAuthority, req: Request): boolean {
  return !authority.keys.isNeeded || validRights(authority, req) !== null;
}

function validRights({ keys, clock, peopleOf }: KeyAuthority, req: Request): ClientRights | null {
  const [presented, ...others] = presentedKeys(req);
  const person = presented === undefined ? (peopleOf()?.personOf(req) ?? null) : null;
  const key = presented === undefined || others.length > 0 ? null : keys.find(presented);
  const rights = person === null ? key : keys.rightsOf(person);
  return rights === null || hasExpired(rights, clock) ? null : rights;
}

/** Sets the client of a request and its rights. A key counts more than the person who sends it. */
async function identify(authority: Authority, req: Request, res: Reply): Promise<ClientRights> {
  const { keys } = authority;
  const people = presentedKeys(req).length === 0 ? authority.peopleOf() : null;
  const person = people?.personOf(req) ?? null;
  if (people !== null && person !== null) {
    res.locals.client = ssoClient(person.name);
    res.locals.groups = person.groups;
    await people.report(person);
    return setRights(res, keys.rightsOf(person));
  }
  const key = keys.find(presentedKey(req)) ?? (await refuseWrong(authority, req, res));
  res.locals.client = key.client;
  return setRights(res, key);
}

function setRights(res: Reply, rights: ClientRights): ClientRights {
  res.locals.key = rights;
  return rights;
}

function checkRights(rights: ClientRights, clock: Pick<Clock, 'now'>, scope: Scope | null): void {
  const subject = 'digest' in rights ? 'the API key' : `the access of ${rights.name}`;
  if (isRefused(rights))
    throw unauthorized(`${subject} is refused, because its line in the keys file has a fault: tell the operator`);
  const { expiresAt, endsWith } = rights;
  if (expiresAt !== null && hasExpired(rights, clock) && endsWith !== undefined)
    throw unauthorized(`the group ${endsWith} ended at ${timestamp(expiresAt)}: ask the operator`);
  if (expiresAt !== null && hasExpired(rights, clock))
    throw unauthorized(`${subject} expired at ${timestamp(expiresAt)}: ask the operator for a new one`);
  if (scope !== null) checkScope(rights, scope);
}

/** Throws `forbidden` if an accepted request lacks a scope that its body or its path has made necessary. */
export function needScope({ locals }: Reply, scope: Scope): void {
  if (locals.key !== null) checkScope(locals.key, scope);
}

function checkScope(rights: ClientRights, scope: Scope): void {
  if (rights.scopes.includes(scope)) return;
  const holder = 'digest' in rights ? 'this API key' : `the access of ${rights.name}`;
  throw new RelayError('forbidden', `${holder} lacks the scope ${scope}: ask the operator for it`);
}

/** Counts a wrong key against the local user if known, else the address: all local users share the loopback address. */
async function refuseWrong({ users, wrongKeys }: Authority, req: Request, res: Reply): Promise<never> {
  res.locals.client = await users.name(req);
  await wrongKeys.count(res.locals.client);
  throw unauthorized('the API key is not valid');
}

function hasExpired({ expiresAt }: ClientRights, clock: Pick<Clock, 'now'>): boolean {
  return expiresAt !== null && clock.now() >= expiresAt;
}

function presentedKey(req: Request): string {
  const [key, ...others] = presentedKeys(req);
  if (key === undefined) throw unauthorized('an API key is needed: send X-API-Key or Authorization: Bearer');
  if (others.length > 0) throw unauthorized('the request carries different API keys: send one');
  return key;
}

/** Returns the distinct keys of all header lines. `req.headers` has only the first of two Authorization headers. */
function presentedKeys(req: Request): string[] {
  const { 'x-api-key': plain = [], authorization = [] } = req.headersDistinct;
  const bearers = authorization.flatMap((value) => /^Bearer +(\S+) *$/i.exec(value)?.[1] ?? []);
  return [...new Set([...plain, ...bearers])].filter((key) => key !== ''); // some clients add an empty X-API-Key
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

/** Sets the sub-client from the user name in the body, unless the header has set it. Returns whether `name` is used. */
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

/** Names the clients whose requests have no key. */
export interface UserSource {
  /** Returns the client of a request without a key. Throws `forbidden` if it may not call. */
  admitCaller(req: Request): Promise<ClientText>;
  /** Returns the client as `admitCaller` does, but never throws `forbidden`. */
  name(req: Request): Promise<ClientText>;
  /** Throws `forbidden` if the process that opened the connection may not name people. */
  admitProxy(req: Request): Promise<void>;
}

const clientByAddress = async (req: Request) => addressClient(addressOf(req));

/** Names each client by its address, for a service without a feature that knows users. */
export const usersByAddress: UserSource = {
  admitCaller: clientByAddress,
  name: clientByAddress,
  admitProxy: async () => {},
};

/**
 * Reports each connection on a Unix socket to the primary, which limits connections per user: each costs the worker a
 * descriptor.
 */
export class ConnectionLimit {
  readonly #primary: Pick<Primary, 'stream'>;
  readonly #credentials: Pick<PeerCredentials, 'uidOf'>;

  constructor(primary: Pick<Primary, 'stream'>, credentials: Pick<PeerCredentials, 'uidOf'>) {
    this.#primary = primary;
    this.#credentials = credentials;
  }

  /** Resolves with whether the connection may stay; also true if the primary does not answer. */
  async admit(socket: Socket): Promise<boolean> {
    const uid = await this.#credentials.uidOf(socket);
    if (socket.destroyed) return false;
    const counted = this.#primary.stream('connection', { uid });
    socket.once('close', () => void counted.return(undefined).catch(() => {}));
    const first = await counted.next().catch(() => null);
    return first?.done === false ? first.value.isAllowed : true;
  }
}

type TrustOfProxy = (address: string | undefined, hops: number) => boolean;

/** Sets the trusted proxies (addresses or CIDR blocks). A proxy address with a port matches, too. */
export function trustProxies(app: Express, proxies: readonly string[]): void {
  app.set('trust proxy', proxies);
  const isTrusted = app.get('trust proxy fn') as TrustOfProxy;
  const isTrustedBare: TrustOfProxy = (address, hops) => isTrusted(address && bareAddress(address), hops);
  app.set('trust proxy', isTrustedBare);
}

/** Whether a connection comes from a trusted proxy. */
export function isTrustedProxy(req: Request): boolean {
  const isTrusted = req.app.get('trust proxy fn') as TrustOfProxy;
  return isTrusted(req.socket.remoteAddress, 0);
}

/** All loopback addresses count as this one: a local user can call from any of 16 million. */
const loopback = '127.0.0.1';

/**
 * Returns the client's address: the peer's, or the one that a trusted proxy reports (Express's `trust proxy`). IPv4
 * mapped into IPv6 becomes IPv4; an IPv6 address becomes its /64 network, because one site gets a whole /64.
 */
export function addressOf(req: Request): string {
  const named = bareAddress(req.ip ?? '');
  const address = isIP(named) === 0 ? lastProxyOf(req) : named;
  const plain = isIP(address) === 6 ? networkOf(groupsOf(address.replace(/%.*$/, ''))) : address;
  return isIP(plain) === 4 && plain.startsWith('127.') ? loopback : plain;
}

/** Returns the farthest trusted proxy, for a client address that is missing or invalid. */
function lastProxyOf(req: Request): string {
  return req.ips?.map(bareAddress).find((address) => isIP(address) !== 0) ?? req.socket.remoteAddress ?? 'local';
}

const withPort = /^(?:\[([^\]]*)\](?::\d+)?|((?:::ffff:)?\d+\.\d+\.\d+\.\d+):\d+)$/i;

/** Longest address, with brackets, quotes, a zone and a port. Anything longer is no address. */
const maxAddressLength = 256;

/** Removes a port, brackets and quotes, which some proxies add. Returns '' for a text that is too long. */
function bareAddress(named: string): string {
  if (named.length > maxAddressLength) return ''; // the expression below takes long for many blanks
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

/** Returns the eight groups of an IPv6 address. A URL spells each address in one way, without dots. */
function groupsOf(address: string): number[] {
  const halves = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const [left = [], right = []] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16));
}
