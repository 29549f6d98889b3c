import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server on loopback in the place of a model's API. What it answers is the matter of each API. */
export abstract class StubApi implements AsyncDisposable {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      response.on('error', () => {}); // a client that was ended in the middle of its answer
      this.serve(request, response).catch((error: Error) => response.destroy(error));
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  protected abstract serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** For a stub that is made from it. */
export async function listeningServer(port = 0): Promise<Server> {
  const server = createServer();
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return server;
}
