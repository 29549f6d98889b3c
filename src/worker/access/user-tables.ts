import { readFile, stat } from 'node:fs/promises';
import { endianness } from 'node:os';
import { oneAtATime } from '../../shared/async.js';

/** One TCP connection as its accepting end sees it: `local` is here, `remote` is the client's end. */
export interface TcpEnds {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
}

/** Whose socket it is. */
interface SocketOwner {
  readonly uid: number;
  readonly inode: string;
}

type ReadTable = () => Promise<Buffer>;

const tcp4 = '/proc/self/net/tcp';
const tcp6 = '/proc/self/net/tcp6';

/** Finds in /proc/net/tcp (proc(5)) which user has the other end of a connection within this machine. */
export class SocketTable {
  readonly #read4: ReadTable;
  readonly #read6: ReadTable;

  /** Connections that are asked for at once share a read; none has a table that is older than its question. */
  constructor(read: (path: string) => Promise<Buffer> = readFile) {
    this.#read4 = oneAtATime(() => read(tcp4));
    this.#read6 = oneAtATime(() => read(tcp6));
  }

  async uidOf(connection: TcpEnds): Promise<number | null> {
    return (await this.ownerOf(connection))?.uid ?? null;
  }

  /** Null where the client's end is not there, or belongs to no process any more. */
  async ownerOf(connection: TcpEnds): Promise<SocketOwner | null> {
    // The kernel may skip a row when others near it go while the table is read.
    return (await this.#find(connection)) ?? (await this.#find(connection));
  }

  async #find({ localAddress, localPort, remoteAddress, remotePort }: TcpEnds): Promise<SocketOwner | null> {
    const remote = wordsOf(remoteAddress);
    const local = wordsOf(localAddress);
    if (remote === null || local === null) return null;
    const ends = (prefix: string) =>
      `: ${prefix}${remote}:${hexPort(remotePort)} ${prefix}${local}:${hexPort(localPort)} `;
    if (remote.length > 8) return ownerAfter(ends(''), await this.#read6());
    // The client may have made a socket for IPv6, and reach an IPv4 address with it.
    return ownerAfter(ends(''), await this.#read4()) ?? ownerAfter(ends(mappedPrefix), await this.#read6());
  }
}

/**
 * The fields after the two ends: state, queues, timer, retransmits, uid, timeout, inode. A socket that its process has
 * closed has the inode 0, and root's uid, whose it was before.
 */
function ownerAfter(ends: string, table: Buffer): SocketOwner | null {
  const at = table.indexOf(ends, 0, 'latin1');
  if (at < 0) return null;
  const line = table.toString('latin1', at + ends.length, at + ends.length + maxRestLength);
  const [, , , , uid, , inode] = line.split(/\s+/);
  return inode === undefined || inode === '0' ? null : { uid: Number(uid), inode };
}

const maxRestLength = 120;

function hexPort(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}

const isLittle = endianness() === 'LE';
const mappedPrefix = isLittle ? '0000000000000000FFFF0000' : '00000000000000000000FFFF';

/** An address of loopback as the table writes it: words of four bytes in the machine's order. Null for any other. */
function wordsOf(address: string): string | null {
  if (address === '::1') return isLittle ? '00000000000000000000000001000000' : '00000000000000000000000000000001';
  const [, dotted] = /^(?:::ffff:)?(127\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  const bytes = dotted?.split('.').map((part) => Number(part).toString(16).toUpperCase().padStart(2, '0'));
  return bytes === undefined ? null : (isLittle ? bytes.toReversed() : bytes).join('');
}

/** Knows the names of this machine's users, as /etc/passwd has them. Users of a directory service have none here. */
export class UserNames {
  readonly #path: string;
  #names: ReadonlyMap<number, string> = new Map();
  /** Inode, size and time of the file when it was read last. */
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
    const state = [ino, size, mtimeMs].join(' ');
    if (state === this.#known) return;
    this.#names = namesIn(await readFile(this.#path, 'utf8'));
    this.#known = state;
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
