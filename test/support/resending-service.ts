import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const usage = { input_tokens: 1, output_tokens: 7 };
const figures = { model: 'm', usage, queue_ms: 0, duration_ms: 1, request_id: 'r' };

/** Answers every job as the service does when its model begins anew after it has been heard. */
export class ResendingService implements AsyncDisposable {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<ResendingService> {
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'text/event-stream');
      response.write(eventOf('delta', { text: 'The capital of Fra' }));
      response.end(eventOf('done', { success: true, response: 'It is Paris.', ...figures }));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return new ResendingService(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close().closeAllConnections();
    await once(this.#server, 'close');
  }
}

function eventOf(event: string, body: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(body)}\n\n`;
}
