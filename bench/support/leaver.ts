import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { jsonPost } from '../../test/support/clients/raw-http.js';

/** Client that sends one of several requests, and disconnects in one of several ways at a random moment. */
export class Leaver {
  readonly #port: number;
  readonly #random: () => number;
  readonly #longestMs: number;

  constructor(port: number, random: () => number, longestMs: number) {
    this.#port = port;
    this.#random = random;
    this.#longestMs = longestMs;
  }

  async askAndLeave(): Promise<void> {
    const socket = connect({ port: this.#port, host: '127.0.0.1', allowHalfOpen: true });
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => {});
    if (this.#random() < 0.8) socket.resume(); // otherwise the client never reads
    socket.write(this.#oneOf(askings)(this.#random));
    await sleep(this.#random() * this.#longestMs);
    this.#oneOf(partings)(socket);
    const tooLate = sleep(5000).then(() => socket.destroy()); // for a half-closed connection
    await Promise.race([closed, tooLate]);
  }

  #oneOf<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)] as T;
  }
}

const models = ['eliza', 'echo'];

function post(path: string, body: object): Buffer {
  return jsonPost(path, JSON.stringify(body));
}

function ask(random: () => number, stream: boolean): Buffer {
  const prompt = `I feel ${random()}. `.repeat(1 + Math.floor(random() * 2000));
  return post('/ask', { prompt, stream, model: models[Math.floor(random() * models.length)] });
}

const askings: readonly ((random: () => number) => Buffer)[] = [
  (random) => ask(random, false),
  (random) => ask(random, true),
  (random) => post('/chat', { message: `I am ${random()}.`, stream: random() < 0.5 }),
  (random) => Buffer.concat([ask(random, true), ask(random, false), ask(random, true)]), // pipelined
  (random) => {
    const whole = ask(random, true);
    return whole.subarray(0, Math.floor(random() * whole.length)); // in the middle of the upload
  },
];

const partings: readonly ((socket: Socket) => void)[] = [
  (socket) => socket.destroy(),
  (socket) => socket.resetAndDestroy(),
  (socket) => socket.end(),
];
