import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** System calls that make a write durable or visible. Only one thread makes the writes of each kind. */
export const writeCalls = ['fdatasync', 'fsync', 'rename'] as const;

/** The settings with which a service has one thread for its files. */
export const oneFileThread = { UV_USE_IO_URING: '0', UV_THREADPOOL_SIZE: '1' };

/** Kills a process, which runs already, at its n-th call from now on. Dispose the result if it has not made so many. */
export async function killAtCall(pid: number, call: (typeof writeCalls)[number], n: number): Promise<AsyncDisposable> {
  const inject = `inject=${call}:signal=KILL:when=${n}`;
  const tracer = spawn('strace', ['-f', '-o', '/dev/null', '-e', inject, '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(tracer, 'exit');
  await untilAttached(tracer);
  return {
    async [Symbol.asyncDispose]() {
      tracer.kill('SIGTERM');
      await ended;
    },
  };
}

async function untilAttached({ stderr }: ChildProcess): Promise<void> {
  let said = '';
  for await (const piece of stderr ?? []) {
    said += String(piece);
    if (said.includes('attached')) break; // its output is not read any further
  }
  if (!said.includes('attached')) throw new Error(`strace: ${said}`);
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
      const isWrite = /\b(?:evalsha|eval|multi|hset|publish)\b/i.test(piece.toString('latin1', 0, 200));
      if (!isWrite || --this.#left !== 0) return void server.write(piece);
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
