import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A way to a port of loopback on which answers can be lost. */
export class DeafProxy implements AsyncDisposable {
  isDeaf = false;
  /** Connections of which no byte comes through any more, in either direction. */
  readonly #dead = new WeakSet<Socket>();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(port: number) {
    this.#server = createServer((client) => {
      const server = connect(port, '127.0.0.1');
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          client.destroy();
          server.destroy();
        });
      }
      client.on('data', (bytes) => {
        if (!this.#dead.has(client)) server.write(bytes);
      });
      server.on('data', (bytes) => {
        if (!this.isDeaf && !this.#dead.has(client)) client.write(bytes);
      });
    });
  }

  static async to(port: number): Promise<DeafProxy> {
    const proxy = new DeafProxy(port);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** As a firewall does that has forgotten them: all connections that there are stay open, and nothing comes through. */
  forget(): void {
    for (const socket of this.#sockets) this.#dead.add(socket);
  }

  /** Breaks all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
