import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import type { TemporaryFolder } from '../basics/folder.js';
import { chunk, request } from './raw-http.js';

const megabyte = 1024 ** 2;

/** Default limit for bodies, bytes. */
export const bodyBytes = 16 * megabyte;
/** Bytes of a body that are sent at once, before single bytes follow. */
const sentBytes = 14 * megabyte;
const dripMs = 1200;

export const jsonType = 'Content-Type: application/json';

/** Ways to announce a body. */
export const manners = {
  'with a length': [`Content-Length: ${bodyBytes}`],
  'without a length': ['Transfer-Encoding: chunked'],
  'that waited to be asked for': [`Content-Length: ${bodyBytes}`, 'Expect: 100-continue'],
} as const;

const holders = ['greedy', 'modest', 'app'] as const;
export type Holder = (typeof holders)[number];

export function keyOf(holder: Holder): string {
  return `the-key-of-${holder}-in-this-test`;
}

export function headerOf(holder: Holder): string {
  return `X-API-Key: ${keyOf(holder)}`;
}

/** Writes a keys file into this folder. The key `app` may have sub-clients, and `greedy` has these options. */
export async function writeHolders(
  folder: TemporaryFolder,
  greedy?: string,
): Promise<{ readonly MODEL_API_KEYS_FILE: string }> {
  const file = join(folder.path, 'keys');
  const options: Readonly<Partial<Record<Holder, string>>> = { app: 'subclients', ...(greedy && { greedy }) };
  const lineOf = (holder: Holder) =>
    `${[holder, 'sha256', digestOf(keyOf(holder)), options[holder]].filter((part) => part !== undefined).join(':')}\n`;
  await writeFile(file, holders.map(lineOf).join(''), { mode: 0o600 });
  return { MODEL_API_KEYS_FILE: file };
}

/** Owns connections that send most of a body at once, and then single bytes from time to time. */
export class DrippingBodies implements Disposable {
  readonly #sockets: Socket[] = [];
  readonly #answers: string[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(port: number, count: number, headers: (index: number) => readonly string[], path = '/ask') {
    const isChunked = headers(0).some((header) => header.includes('chunked'));
    const written = (text: string) => (isChunked ? chunk(text) : text);
    for (let index = 0; index < count; index++) {
      const socket = connect(port, '127.0.0.1');
      this.#sockets.push(socket);
      socket.on('error', () => {}).on('data', (bytes: Buffer) => this.#answers.push(bytes.toString('latin1', 0, 12)));
      socket.write(request(`POST ${path}`, [jsonType, ...headers(index)]));
      socket.write(written(`{"prompt":"${'x'.repeat(sentBytes)}`));
    }
    this.#timer = setInterval(() => {
      for (const socket of this.#sockets) if (socket.writable) socket.write(written('x'));
    }, dripMs);
  }

  /** Statuses of the answers to bodies that the service gave up. */
  get statuses(): string[] {
    return this.#answers.map((line) => line.slice('HTTP/1.1 '.length)).filter((status) => status !== '100');
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    for (const socket of this.#sockets) socket.destroy();
  }
}
