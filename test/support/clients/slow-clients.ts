import { connect, type Socket } from 'node:net';
import { request } from './raw-http.js';

/** Kinds of slow clients: slow headers, slow body, or an unread answer. */
export const slowKinds = ['headers', 'body', 'reader'] as const;
export type SlowKind = (typeof slowKinds)[number];

const dribbleMs = 1000;
const openAtOnce = 50;
/** Requests for 3 MB, more than the kernel buffers for a client that reads nothing. */
const reading = Buffer.concat(Array.from({ length: 2 }, () => request('GET /docs/swagger-ui-bundle.js')));
const first: Readonly<Record<SlowKind, Buffer>> = {
  headers: Buffer.from('POST /ask HTTP/1.1\r\nHost: localhost\r\nX-Slow: '),
  body: request('POST /ask', ['Content-Type: application/json', 'Content-Length: 100000'], '{"prompt":"'),
  reader: reading,
};

/** Owns many slow clients of one kind. Connections that the service has closed are not reopened. */
export class SlowClients implements Disposable {
  readonly #sockets: Socket[] = [];
  readonly #timer: NodeJS.Timeout;
  closed = 0;

  /** Resolves when all clients are connected and have sent their first bytes. */
  static async open(port: number, kind: SlowKind, count: number): Promise<SlowClients> {
    const clients = new SlowClients(kind);
    for (let opened = 0; opened < count; opened += openAtOnce) {
      await Promise.all(Array.from({ length: Math.min(openAtOnce, count - opened) }, () => clients.#open(port, kind)));
    }
    return clients;
  }

  private constructor(kind: SlowKind) {
    const dribble = () => {
      for (const socket of this.#sockets) if (socket.writable) socket.write('x');
    };
    this.#timer = setInterval(kind === 'reader' ? () => {} : dribble, dribbleMs);
  }

  get size(): number {
    return this.#sockets.length - this.closed;
  }

  #open(port: number, kind: SlowKind): Promise<void> {
    const socket = connect(port, '127.0.0.1');
    if (kind === 'reader') socket.pause();
    else socket.resume();
    this.#sockets.push(socket);
    socket.on('error', () => {}).once('close', () => this.closed++);
    return new Promise((resolve) => {
      socket.once('close', () => resolve());
      socket.once('connect', () => socket.write(first[kind], () => resolve()));
    });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Returns the times of `count` sequential requests for /health, milliseconds, each on a new connection. */
export async function healthTimes(url: string, count: number): Promise<number[]> {
  const times: number[] = [];
  while (times.length < count) {
    const from = performance.now();
    const { status } = await fetch(`${url}/health`, { headers: { connection: 'close' } });
    if (status !== 200) throw new Error(`/health answered ${status}`);
    times.push(performance.now() - from);
  }
  return times;
}
