import { readFile } from 'node:fs/promises';
import { endianness } from 'node:os';
import { oneAtATime } from '../../shared/async.js';

/** Ends of a TCP connection as the server sees it: `local` is the server's end, `remote` the client's. */
export interface TcpEnds {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
}

/** Owner of a socket; `inode` identifies the socket. */
interface SocketOwner {
  readonly uid: number;
  readonly inode: string;
}

type ReadTable = () => Promise<Buffer>;

const tcp4 = '/proc/self/net/tcp';
const tcp6 = '/proc/self/net/tcp6';

/** Finds the user of a local client in /proc/net/tcp (see proc(5)). */
export class SocketTable {
  readonly #read4: ReadTable;
  readonly #read6: ReadTable;

  /** Simultaneous lookups share one read of a table. No lookup gets a table that was read before it began. */
  constructor(read: (path: string) => Promise<Buffer> = readFile) {
    this.#read4 = oneAtATime(() => read(tcp4));
    this.#read6 = oneAtATime(() => read(tcp6));
  }

  async uidOf(connection: TcpEnds): Promise<number | null> {
    return (await this.ownerOf(connection))?.uid ?? null;
  }

  /** Returns null if the client's socket is not in the table, or has been closed. */
  async ownerOf(connection: TcpEnds): Promise<SocketOwner | null> {
    // The second try is for rows that the kernel skips when nearby rows disappear during a read.
    return (await this.#find(connection)) ?? (await this.#find(connection));
  }

  async #find({ localAddress, localPort, remoteAddress, remotePort }: TcpEnds): Promise<SocketOwner | null> {
    const remote = wordsOf(remoteAddress);
    const local = wordsOf(localAddress);
    if (remote === null || local === null) return null;
    const ends = (prefix: string) =>
      `: ${prefix}${remote}:${hexPort(remotePort)} ${prefix}${local}:${hexPort(localPort)} `;
    if (remote.length > 8) return ownerAfter(ends(''), await this.#read6());
    // A client may reach an IPv4 address through an IPv6 socket.
    return ownerAfter(ends(''), await this.#read4()) ?? ownerAfter(ends(mappedPrefix), await this.#read6());
  }
}

/**
 * Parses the fields after the two addresses: state, queues, timer, retransmits, uid, timeout, inode. A closed socket
 * has the inode 0 and the uid 0, whichever user had it.
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

/**
 * Formats a loopback address like the table: four-byte words in the machine's byte order. Returns null for other
 * addresses.
 */
function wordsOf(address: string): string | null {
  if (address === '::1') return isLittle ? '00000000000000000000000001000000' : '00000000000000000000000000000001';
  const [, dotted] = /^(?:::ffff:)?(127\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  const bytes = dotted?.split('.').map((part) => Number(part).toString(16).toUpperCase().padStart(2, '0'));
  return bytes === undefined ? null : (isLittle ? bytes.toReversed() : bytes).join('');
}
