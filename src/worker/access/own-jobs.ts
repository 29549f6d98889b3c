import type { Socket } from 'node:net';
import { RelayError } from '../../shared/errors.js';
import { isUnixSocket } from '../../shared/node-internals/connections.js';
import type { PeerCredentials } from '../../shared/node-internals/peer-credentials.js';
import { holdsSocket, type Instance, writeInstance } from '../../shared/process/proc.js';
import type { ProcessScanner } from '../../shared/process/scanner.js';
import type { AsyncHandler } from '../http/exchange.js';
import type { SocketTable } from './user-tables.js';

/** Detects connections whose client is a process of one of this service's jobs; each connection is looked up once. */
export class OwnJobs {
  readonly #cookiePrefix: string;
  readonly #table: Pick<SocketTable, 'ownerOf'>;
  readonly #scanner: Pick<ProcessScanner, 'find'>;
  readonly #credentials: Pick<PeerCredentials, 'uidOf' | 'pidOf'>;
  readonly #known = new WeakMap<Socket, Promise<boolean>>();

  constructor(
    primary: Instance,
    table: Pick<SocketTable, 'ownerOf'>,
    scanner: Pick<ProcessScanner, 'find'>,
    credentials: Pick<PeerCredentials, 'uidOf' | 'pidOf'>,
  ) {
    this.#cookiePrefix = `${writeInstance(primary)}:`;
    this.#table = table;
    this.#scanner = scanner;
    this.#credentials = credentials;
  }

  /** Whether the client is a process of a job; false if unknown, such as behind a proxy or on another host. */
  isOf(socket: Socket): Promise<boolean> {
    // The search fails if /proc is missing or no descriptor is free.
    const known = this.#known.get(socket) ?? this.#search(socket).catch(() => false);
    this.#known.set(socket, known);
    return known;
  }

  /** Compares the user first, which is cheap: job processes run as the user of the service, most callers do not. */
  async #search(socket: Socket): Promise<boolean> {
    if (isUnixSocket(socket)) return this.#isPeerOf(socket);
    const { localAddress, localPort, remoteAddress, remotePort } = socket;
    if (!localAddress || !localPort || !remoteAddress || !remotePort) return false;
    const owner = await this.#table.ownerOf({ localAddress, localPort, remoteAddress, remotePort });
    if (owner === null || owner.uid !== process.getuid?.()) return false;
    const pids = await this.#ownPids();
    const found = await Promise.all(pids.map((pid) => holdsSocket(pid, owner.inode)));
    return found.includes(true);
  }

  async #isPeerOf(socket: Socket): Promise<boolean> {
    const [uid, pid] = await Promise.all([this.#credentials.uidOf(socket), this.#credentials.pidOf(socket)]);
    return pid !== null && uid === process.getuid?.() && (await this.#ownPids()).includes(pid);
  }

  async #ownPids(): Promise<readonly number[]> {
    return (await this.#scanner.find((cookie) => cookie.startsWith(this.#cookiePrefix))).pids;
  }
}

/** Refuses requests from a job of this service: each would hold a slot while it waits for the next one, without end. */
export function refuseOwnJobs(ownJobs: Pick<OwnJobs, 'isOf'>): AsyncHandler {
  return async ({ socket }, _res, next) => {
    if (await ownJobs.isOf(socket))
      throw new RelayError(
        'forbidden',
        'this request comes from a job of this service, which must not call the service itself',
      );
    next();
  };
}
