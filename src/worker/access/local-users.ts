import { readFile, stat } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { Request } from 'express';
import { addressClient, userClient } from '../../shared/client.js';
import { RelayError } from '../../shared/errors.js';
import type { WorkerSettings } from '../../shared/ipc/protocol.js';
import { isUnixSocket } from '../../shared/node-internals/connections.js';
import type { PeerCredentials } from '../../shared/node-internals/peer-credentials.js';
import type { Primary } from '../http/exchange.js';
import { addressOf } from './client-address.js';
import type { SocketTable } from './socket-table.js';

/** Knows the names of this machine's users, as /etc/passwd has them. Users of a directory service have none here. */
export class UserNames {
  readonly #path: string;
  #names: ReadonlyMap<number, string> = new Map();
  /** What the file looked like when it was read last. */
  #known = '';

  constructor(path = '/etc/passwd') {
    this.#path = path;
  }

  /** `uid-1234` for a user without a name. */
  async nameOf(uid: number): Promise<string> {
    await this.#refresh().catch(() => {});
    return this.#names.get(uid) ?? `uid-${uid}`;
  }

  async #refresh(): Promise<void> {
    const { ino, size, mtimeMs } = await stat(this.#path);
    const looks = [ino, size, mtimeMs].join(' ');
    if (looks === this.#known) return;
    this.#names = namesIn(await readFile(this.#path, 'utf8'));
    this.#known = looks;
  }
}

/** Of two names for one user the first counts. A name that says `uid-…` could be mistaken for another user's. */
function namesIn(passwd: string): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const line of passwd.split('\n')) {
    const [, name = '', id] = /^([^:]+):[^:]*:(\d+):/.exec(line) ?? [];
    const uid = Number(id);
    if (id !== undefined && !names.has(uid) && !/^uid-/.test(name)) names.set(uid, name);
  }
  return names;
}

interface LocalUser {
  readonly uid: number;
  readonly name: string;
}

/** Where a connection's user can be looked up. */
export interface UserSources {
  readonly table: Pick<SocketTable, 'uidOf'>;
  readonly credentials: Pick<PeerCredentials, 'uidOf'>;
  readonly names: Pick<UserNames, 'nameOf'>;
}

/** Owns what is known of the users at the other ends of this worker's connections. Each is looked up once. */
export class LocalUsers {
  readonly #settings: Pick<WorkerSettings, 'localUsers' | 'allowedUsers'>;
  readonly #sources: UserSources;
  readonly #known = new WeakMap<Socket, Promise<LocalUser | null>>();

  constructor(settings: Pick<WorkerSettings, 'localUsers' | 'allowedUsers'>, sources: UserSources) {
    this.#settings = settings;
    this.#sources = sources;
  }

  /** The client of a request without a key: its local user, else its address. Throws `forbidden` for who may not call. */
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

  /** The same, for whoever may call and whoever may not. */
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

function isTrustedProxy(req: Request): boolean {
  const isTrusted = req.app.get('trust proxy fn') as (address: string | undefined, hops: number) => boolean;
  return isTrusted(req.socket.remoteAddress, 0);
}

/** In a user namespace, this uid stands for every user who has none there. */
const overflowUid = 65_534;

async function isMapped(): Promise<boolean> {
  const map = await readFile('/proc/self/uid_map', 'latin1');
  return !/^\s*0\s+0\s+4294967295\s*$/.test(map);
}
