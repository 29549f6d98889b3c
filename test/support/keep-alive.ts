import { Agent, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';

export interface KeptAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** A client that keeps its connections and opens no more than it may. Rejects when a connection is lost. */
export class KeepAliveClient implements Disposable {
  readonly #agent: Agent;
  readonly #port: number;

  constructor(port: number, maxConnections: number) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: maxConnections });
    this.#port = port;
  }

  get(path: string): Promise<KeptAnswer> {
    return this.#send('GET', path);
  }

  /** Rejects with an AbortError when the signal aborts, and closes the connection. */
  post(path: string, body: object, signal?: AbortSignal): Promise<KeptAnswer> {
    return this.#send('POST', path, JSON.stringify(body), signal);
  }

  #send(method: string, path: string, body?: string, signal?: AbortSignal): Promise<KeptAnswer> {
    return new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { 'Content-Type': 'application/json' };
      const options = { host: '127.0.0.1', port: this.#port, method, path, headers, agent: this.#agent, signal };
      const received = (response: IncomingMessage) =>
        void json(response).then(
          (value) => resolve({ status: response.statusCode ?? 0, body: value as KeptAnswer['body'] }),
          reject,
        );
      request(options, received).on('error', reject).end(body);
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
