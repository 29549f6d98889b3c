import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Server on loopback that plays a model's API. Subclasses decide the answers. */
export abstract class StubApi implements AsyncDisposable {
  readonly #server: Server;
  #openAnswers = 0;

  constructor(server: Server) {
    this.#server = server;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#openAnswers += 1;
      response.on('close', () => {
        this.#openAnswers -= 1;
      });
      response.on('error', () => {}); // the client was ended during its answer
      this.serve(request, response).catch((error: Error) => response.destroy(error));
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Number of requests whose answers are neither finished nor cut off. */
  get openAnswers(): number {
    return this.#openAnswers;
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

/** Returns a listening HTTP server for a stub. */
export async function listeningServer(port = 0): Promise<Server> {
  const server = createServer();
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return server;
}
