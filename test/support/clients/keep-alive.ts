import { Agent, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';

export interface KeptAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** HTTP client with a limited number of persistent connections. Requests reject if their connection is lost. */
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

  /** Sends a request. If the signal aborts, closes the connection and rejects with an AbortError. */
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
