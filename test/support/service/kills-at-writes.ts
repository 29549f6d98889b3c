import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { programs } from './service.js';

/** The settings with which the primary of a service kills itself at the n-th write after n was written into this file. */
export function killedAtWrite(file: string): Readonly<Record<string, string>> {
  const preload = join(programs, '..', 'kills-at-write.cjs');
  return { NODE_OPTIONS: `--require ${preload}`, KILL_AT_WRITE: file };
}

/** Passes on the connections to a server, and kills a process at its n-th message. */
export class KillingProxy implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#pass(socket));
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #left = Number.POSITIVE_INFINITY;
  #isBefore = false;
  #kill: () => void = () => {};

  /** `port`: that of the server. */
  constructor(port: number) {
    this.#port = port;
  }

  async listen(): Promise<number> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Kills at the n-th message: one with an odd number before the server gets it, any other one after it. */
  arm(n: number, kill: () => void): void {
    this.#left = n;
    this.#isBefore = n % 2 === 1;
    this.#kill = kill;
  }

  disarm(): void {
    this.#left = Number.POSITIVE_INFINITY;
  }

  #pass(socket: Socket): void {
    const server = connect(this.#port, '127.0.0.1');
    for (const each of [socket, server]) {
      this.#sockets.add(each);
      each.on('error', () => {});
      each.on('close', () => {
        this.#sockets.delete(each);
        for (const other of [socket, server]) other.destroy();
      });
    }
    server.pipe(socket);
    socket.on('data', (piece: Buffer) => {
      if (--this.#left !== 0) return void server.write(piece);
      if (this.#isBefore) return this.#kill();
      server.write(piece, () => this.#kill());
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server.close(), 'close');
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
