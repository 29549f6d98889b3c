import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isLoopback, localUrl } from '../../shared/config/addresses.js';
import type { Config } from '../../shared/config/config.js';
import type { ConfiguredPort, PortNumber } from '../../shared/config/feature-variables.js';
import { type BoundSocket, bindTcp, bindUnix, inheritedSocket } from '../../shared/node-internals/connections.js';
import { listPids, readStat, readVirtualFile } from '../../shared/process/proc.js';

/** The listening addresses. The primary keeps them open, and every worker listens on all of them. */
export interface Addresses {
  /** File descriptors in this process. */
  readonly fds: readonly number[];
  /** Address that the service reports. */
  readonly main: NonNullable<BoundSocket['address']>;
  /** Open ports of features. Their descriptors are the last ones. */
  readonly ports: readonly OpenPort[];
  close(): void;
}

interface OpenPort extends Pick<ConfiguredPort, 'name' | 'clients'> {
  readonly address: Addresses['main'];
}

/** Returns the URL of an address, for clients on this host. */
export function urlOf({ host, port }: Addresses['main']): string {
  return localUrl(host, port);
}

/** Calls `make` with this umask. */
export type WithUmask = <T>(mask: number, make: () => T) => T;

/** Umask that leaves 0660 for the Unix socket. */
const socketMask = 0o117;

/**
 * Opens the configured addresses. Sockets passed by systemd replace host and port. Rejects with the error of the
 * system; passed sockets stay open then, for another attempt.
 */
export async function openAddresses(
  config: Config,
  passedFds: readonly number[],
  withUmask: WithUmask,
): Promise<Addresses> {
  const { socketPath } = config;
  const sockets: BoundSocket[] = [];
  const passed: BoundSocket[] = [];
  try {
    if (socketPath !== null) sockets.push(withUmask(socketMask, () => bindUnix(socketPath)));
    if (passedFds.length === 0) sockets.push(await bindTcp(config.host, config.port));
    for (const fd of passedFds) passed.push(passedSocket(fd, config.needsKey));
    sockets.push(...passed);
    const main = sockets.find(({ address }) => address !== null)?.address ?? { host: config.host, port: config.port };
    const ports: OpenPort[] = [];
    for (const { name, clients, number } of config.featurePorts) {
      if (number === null) continue;
      const socket = await bindTcp(main.host, number);
      sockets.push(socket);
      ports.push({ name, clients, address: socket.address ?? main });
    }
    const fds = sockets.map(({ fd }) => fd);
    return { fds, main, ports, close: () => closeAll(sockets) };
  } catch (error) {
    closeAll(sockets.filter((socket) => !passed.includes(socket)));
    throw error;
  }
}

function passedSocket(fd: number, hasKey: boolean): BoundSocket {
  const socket = inheritedSocket(fd);
  if (socket.address === null) throw new Error('a socket passed by systemd is not a TCP socket');
  const { host } = socket.address;
  if (isLoopback(host) || hasKey) return socket;
  throw new Error(`the socket passed by systemd can be reached from other machines at ${host}: set an API key`);
}

function closeAll(sockets: readonly BoundSocket[]): void {
  for (const socket of sockets) socket.close();
}

/** The machine does not have the address yet, or cannot look up its name: DHCP or a VPN comes later. */
const passingCodes = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'];

/** The folder of the Unix socket may be mounted later: libuv reports EACCES for it. */
export async function mayBeAvailableSoon(
  { code = '', message }: NodeJS.ErrnoException,
  socketPath: string | null,
): Promise<boolean> {
  if (passingCodes.includes(code)) return true;
  if (socketPath === null || !message.endsWith(socketPath)) return false;
  return (await stat(dirname(socketPath)).catch(() => null)) === null;
}

interface WantedAddress {
  readonly host: string;
  readonly port: number;
  readonly socketPath: string | null;
  /** Ports that features open themselves. */
  readonly ownPorts: readonly PortNumber[];
  readonly featurePorts: readonly PortNumber[];
}

const otherHost = 'set MODEL_API_HOST or serve --host to an address of this machine';
const otherPort = 'choose another port with MODEL_API_PORT or serve --port';

/**
 * Explains in one sentence why an address cannot be opened, and what to do. The error of the system follows in
 * brackets.
 */
export async function addressFault(
  error: NodeJS.ErrnoException,
  { host, port: mainPort, socketPath, ownPorts, featurePorts }: WantedAddress,
): Promise<string> {
  const { code, message } = error;
  if (socketPath !== null && message.includes(socketPath))
    return `the Unix socket of MODEL_API_SOCKET cannot be created: its folder must exist and be writable (${message})`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the host ${host} is unknown: ${otherHost} (${message})`;
  const otherAddresses = [
    ...ownPorts.map(({ number, variable }) => ['listen ', number, variable] as const),
    ...featurePorts.map(({ number, variable }) => ['bind ', number, variable] as const),
  ];
  const other = otherAddresses.find(([begin, wanted]) => message.startsWith(begin) && message.endsWith(`:${wanted}`));
  // The message does not name the main address, for example if systemd has passed the socket: then no advice applies.
  if (other === undefined && !message.includes(`${host}:${mainPort}`)) return message;
  const [port, wayOut] =
    other === undefined ? [mainPort, otherPort] : [Number(other[1]), `choose another port with ${other[2]}`];
  if (code === 'EADDRINUSE') {
    const holder = await holderOf(port).catch(() => null);
    const owner = holder === null ? 'another program' : `${holder.name} (process ${holder.pid})`;
    return `port ${port} is in use by ${owner}: end it, or ${wayOut} (${message})`;
  }
  if (code === 'EACCES') return `only root may use port ${port}: ${wayOut}, 1024 or above (${message})`;
  // The address in the message may be that of a socket which systemd has passed, not the configured one.
  const named = message.slice(message.lastIndexOf(' ') + 1, message.lastIndexOf(':'));
  if (code === 'EADDRNOTAVAIL') return `${named} is not an address of this machine: ${otherHost} (${message})`;
  return message;
}

interface Holder {
  readonly pid: number;
  readonly name: string;
}

/**
 * Finds the process that listens on this TCP port; null if it is of another user. A service and its workers share the
 * socket: the service is the one that started first.
 */
async function holderOf(port: number): Promise<Holder | null> {
  const links = new Set((await listeningInodes(port)).map((inode) => `socket:[${inode}]`));
  const pids = (await listPids()) ?? [];
  if (links.size === 0 || pids === 'unreadable') return null;
  let first: { readonly pid: number; readonly startTicks: number } | null = null;
  for (const pid of pids) {
    if (!(await holdsOneOf(links, pid))) continue;
    const startTicks = Number((await readStat(pid))?.startTicks ?? Number.POSITIVE_INFINITY);
    if (first === null || startTicks < first.startTicks) first = { pid, startTicks };
  }
  return first === null ? null : { pid: first.pid, name: await nameOf(first.pid) };
}

const listening = '0A';

/**
 * Reads /proc/net/tcp, see proc(5): number, local address, remote address, state, queues, timer, retransmits, uid,
 * timeout, inode.
 */
async function listeningInodes(port: number): Promise<string[]> {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/self/net/${name}`, 'utf8').catch(() => '')),
  );
  return tables.flatMap((table) =>
    table
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local = '', , state]) => local.endsWith(wanted) && state === listening)
      .map((row) => row[9] ?? ''),
  );
}

async function holdsOneOf(links: ReadonlySet<string>, pid: number): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const targets = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  return targets.some((target) => links.has(target));
}

/** Names a process. The command name alone would be `node` for almost all scripts. */
async function nameOf(pid: number): Promise<string> {
  const words = String(await readVirtualFile(`/proc/${pid}/cmdline`).catch(() => '')).split('\0');
  const isOurs = words
    .slice(0, 3)
    .some((word) => /(^|\/)prompt-relay$|dist\/src\/(command|primary)\/main\.js$/.test(word));
  if (isOurs) return 'another prompt-relay';
  return String(await readVirtualFile(`/proc/${pid}/comm`).catch(() => 'a program')).trim();
}
