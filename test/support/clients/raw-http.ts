import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { until } from '../basics/until.js';

/** Answer as received; header names in lower case, `body` parsed if JSON. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/** Returns a request as bytes, with a Host header unless `headers` has one; a string body is sent as UTF-8. */
export function request(line: string, headers: readonly string[] = [], body: string | Buffer = ''): Buffer {
  const hasHost = headers.some((header) => /^host:/i.test(header));
  const head = [`${line} HTTP/1.1`, ...(hasHost ? [] : ['Host: localhost']), ...headers, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
}

/** Returns a POST of JSON, with its Content-Length unless `headers` sets the length. */
export function jsonPost(path: string, body: string | Buffer, headers: readonly string[] = []): Buffer {
  const hasLength = headers.some((header) => /^(content-length|transfer-encoding):/i.test(header));
  const length = hasLength ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return request(`POST ${path}`, ['Content-Type: application/json', ...length, ...headers], body);
}

export function chunk(bytes: string): string {
  return `${Buffer.byteLength(bytes).toString(16)}\r\n${bytes}\r\n`;
}

/** Connection that sends exact bytes, and reads the answers in order. */
export class RawConnection implements Disposable {
  readonly #socket: Socket;
  readonly #openedMs = performance.now();
  #received = Buffer.alloc(0);
  #closedMs: number | null = null;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes]);
    });
    socket.on('error', () => {});
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        this.#closedMs ??= performance.now() - this.#openedMs;
      });
    }
  }

  /** Connects. `from` is a loopback address. */
  static async open(port: number, from = '127.0.0.1'): Promise<RawConnection> {
    // Half-open, to detect a server that ends only its side, and waits for the client to do the same.
    const socket = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true });
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  send(bytes: string | Buffer): void {
    this.#socket.write(bytes);
  }

  /** Ends the sending side; answers can still be read. */
  endInput(): void {
    this.#socket.end();
  }

  /** Resets the connection. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  /** Whether bytes have arrived that `answer` has not consumed. */
  get hasMore(): boolean {
    return this.#received.length > 0;
  }

  /** Returns the next answer, interim ones (1xx) included. `bodyless`: the request was HEAD. */
  async answer({ bodyless = false, withinMs = 15_000 } = {}): Promise<RawAnswer> {
    const answer = await until(
      () => this.#take(bodyless) ?? (this.#closedMs === null ? null : 'closed'),
      'an HTTP answer',
      withinMs,
    );
    if (answer === 'closed') throw new Error(`closed without an answer; left over: ${this.#received.toString()}`);
    return answer;
  }

  /** Resolves when the server has closed, with the milliseconds since the connection was opened. */
  closed(withinMs = 15_000): Promise<number> {
    return until(() => this.#closedMs, 'the connection to be closed', withinMs);
  }

  #take(bodyless: boolean): RawAnswer | null {
    const headEnd = this.#received.indexOf('\r\n\r\n');
    if (headEnd < 0) return null;
    const [first = '', ...lines] = this.#received.toString('latin1', 0, headEnd).split('\r\n');
    const headers = Object.fromEntries(lines.map(splitHeader));
    const length = bodyless ? 0 : Number(headers['content-length'] ?? 0);
    const end = headEnd + 4 + length;
    if (this.#received.length < end) return null;
    const text = this.#received.toString('utf8', headEnd + 4, end);
    this.#received = this.#received.subarray(end);
    const isJson = text !== '' && headers['content-type']?.startsWith('application/json');
    return { status: Number(first.split(' ')[1]), headers, text, body: isJson ? JSON.parse(text) : {} };
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

function splitHeader(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

/** Sends these bytes on a new connection, and returns the one answer. */
export async function exchange(port: number, bytes: Buffer | string, bodyless = false): Promise<RawAnswer> {
  using connection = await RawConnection.open(port);
  connection.send(bytes);
  return await connection.answer({ bodyless });
}

/** Sends these bytes from another loopback address, and returns the one answer. */
export async function exchangeFrom(from: string, port: number, bytes: Buffer): Promise<RawAnswer> {
  using connection = await RawConnection.open(port, from);
  connection.send(bytes);
  return await connection.answer({});
}

/** All data received on one connection. */
export interface Received {
  readonly statuses: readonly number[];
  readonly requestIds: readonly string[];
  readonly isClosed: boolean;
}

/** Silence after an answer that counts as its end; no further answer takes this long. */
const quietMs = 250;

/** Sends these bytes, and reads until the server closes or is silent after an answer. */
export async function receive(port: number, bytes: Buffer): Promise<Received> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  let text = '';
  let isClosed = false;
  const over = new Promise<void>((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const close = () => {
      isClosed = true;
      clearTimeout(timer);
      resolve();
    };
    socket.setEncoding('latin1').on('data', (piece: string) => {
      text += piece;
      clearTimeout(timer);
      timer = setTimeout(resolve, quietMs);
    });
    socket.on('error', close).on('end', close).on('close', close);
  });
  socket.write(bytes);
  await over;
  socket.destroy();
  const heads = [...text.matchAll(/HTTP\/1\.1 (\d+) [^\r]*\r\n(.*?)\r\n\r\n/gs)];
  return {
    statuses: heads.map(([, status]) => Number(status)).filter((status) => status >= 200),
    requestIds: heads.flatMap(([, , headers = '']) => /^x-request-id: (\S+)/im.exec(headers)?.[1] ?? []),
    isClosed,
  };
}
