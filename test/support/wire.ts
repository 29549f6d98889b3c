import { Agent, request } from 'node:http';
import { json } from 'node:stream/consumers';
import type { Service } from './service.js';

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** One connection that stays open, and so one worker that serves it. */
export class Wire implements Disposable {
  readonly #service: Service;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(service: Service) {
    this.#service = service;
  }

  ask(prompt: string): Promise<Answer> {
    return this.#send('POST', '/ask', { prompt });
  }

  /** The worker at the other end, as the log tells. */
  async worker(): Promise<number> {
    const requestId = crypto.randomUUID();
    await this.#send('GET', '/health', undefined, { 'x-request-id': requestId });
    const { pid } = await this.#service.log('http_request_completed', (record) => record.request_id === requestId);
    return pid as number;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  #send(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const options = { method, agent: this.#agent, headers: { 'content-type': 'application/json', ...headers } };
      const sent = request(this.#service.url + path, options, (response) => {
        const answer = (parsed: unknown) => ({ status: response.statusCode ?? 0, body: parsed as Answer['body'] });
        json(response).then((parsed) => resolve(answer(parsed)), reject);
      });
      sent.once('error', reject);
      sent.end(body && JSON.stringify(body));
    });
  }
}

/** Opens connections until this many end at the worker. */
export async function wiresTo(service: Service, worker: number, count: number): Promise<Wire[]> {
  const wires: Wire[] = [];
  for (let tries = 0; wires.length < count && tries < 20 * count; tries++) {
    const wire = new Wire(service);
    if ((await wire.worker()) === worker) wires.push(wire);
    else wire[Symbol.dispose]();
  }
  return wires;
}
