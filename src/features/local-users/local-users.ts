import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { Request } from 'express';
import { addressClient, type ClientText, userClient } from '../../shared/client.js';
import { RelayError } from '../../shared/errors.js';
import { isUnixSocket } from '../../shared/node-internals/connections.js';
import type { PeerCredentials } from '../../shared/node-internals/peer-credentials.js';
import { addressOf, isTrustedProxy, type UserSource } from '../../worker/access/authenticate.js';
import type { SocketTable } from '../../worker/access/user-tables.js';
import type { UserSettings } from './shared.js';
import type { UserNames } from './user-names.js';

interface LocalUser {
  readonly uid: number;
  readonly name: string;
}

/** Sources of the user at the other end of a connection: `table` for TCP, `credentials` for Unix sockets. */
export interface UserSources {
  readonly table: Pick<SocketTable, 'uidOf'>;
  readonly credentials: Pick<PeerCredentials, 'uidOf'>;
  readonly names: Pick<UserNames, 'nameOf'>;
}

/** Owns the local users of this worker's connections; each connection is looked up once. */
export class LocalUsers implements UserSource {
  readonly #settings: UserSettings;
  readonly #sources: UserSources;
  readonly #known = new WeakMap<Socket, Promise<LocalUser | null>>();

  constructor(settings: UserSettings, sources: UserSources) {
    this.#settings = settings;
    this.#sources = sources;
  }

  /**
   * Returns the client of a request without a key: its local user, else its address. Throws `forbidden` if it may not
   * call.
   */
  async admitCaller(req: Request): Promise<ClientText> {
    const { localUsers, allowedUsers } = this.#settings;
    const user = await this.#userOf(req);
    if (allowedUsers.length > 0 && !isAmong(allowedUsers, user)) {
      throw forbidden(`${user === null ? 'this caller' : `the user ${user.name}`} is not in MODEL_API_ALLOWED_USERS`);
    }
    if (user === null && localUsers === 'require') throw forbidden(unnamed);
    return clientOf(user, req);
  }

  /** Returns the client as `admitCaller` does, but never throws `forbidden`. */
  async name(req: Request): Promise<ClientText> {
    return clientOf(await this.#userOf(req), req);
  }

  /** Throws `forbidden` if only some users may call, and the process that opened the connection belongs to no such user. */
  async admitProxy({ socket }: Request): Promise<void> {
    const { allowedUsers } = this.#settings;
    if (allowedUsers.length > 0 && !isAmong(allowedUsers, await this.#ownerOf(socket)))
      throw forbidden('the user of the proxy is not in MODEL_API_ALLOWED_USERS');
  }

  /** Returns null if local users are off, and for a trusted proxy, because its user is not the client. */
  async #userOf(req: Request): Promise<LocalUser | null> {
    if (this.#settings.localUsers === 'off' || isTrustedProxy(req)) return null;
    return this.#ownerOf(req.socket);
  }

  /** Returns the user of the process at the other end of a connection; null if it is unknown. */
  #ownerOf(socket: Socket): Promise<LocalUser | null> {
    const known = this.#known.get(socket) ?? this.#lookUp(socket);
    this.#known.set(socket, known);
    return known;
  }

  async #lookUp(socket: Socket): Promise<LocalUser | null> {
    const uid = await this.#uidOf(socket).catch(() => null); // /proc is missing, or no descriptor is free
    if (uid === null || (uid === overflowUid && (await isMapped()))) return null;
    return { uid, name: await this.#sources.names.nameOf(uid) };
  }

  async #uidOf(socket: Socket): Promise<number | null> {
    const { table, credentials } = this.#sources;
    const { localAddress, localPort, remoteAddress, remotePort } = socket;
    if (isUnixSocket(socket)) return credentials.uidOf(socket);
    if (!localAddress || !localPort || !remoteAddress || !remotePort) return null; // the connection has closed
    return table.uidOf({ localAddress, localPort, remoteAddress, remotePort });
  }
}

function clientOf(user: LocalUser | null, req: Request): ClientText {
  return user === null ? addressClient(addressOf(req)) : userClient(user.name);
}

const unnamed =
  'this caller cannot be identified: MODEL_API_LOCAL_USERS is require, so requests must come from a user of this machine';

function forbidden(message: string): RelayError {
  return new RelayError('forbidden', message);
}

/** Whether a list of allowed users contains this one. An entry of digits is a user id, any other entry a name. */
function isAmong(allowed: readonly string[], user: LocalUser | null): boolean {
  return user !== null && allowed.some((entry) => entry === (/^\d+$/.test(entry) ? String(user.uid) : user.name));
}

/** Overflow uid: in a user namespace, all users without a mapping have it. */
const overflowUid = 65_534;

async function isMapped(): Promise<boolean> {
  const map = await readFile('/proc/self/uid_map', 'latin1');
  return !/^\s*0\s+0\s+4294967295\s*$/.test(map);
}
