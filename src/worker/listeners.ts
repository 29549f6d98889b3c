import type { Server } from 'node:http';
import type { Clock } from '../shared/clock.js';
import type { DoorSettings } from '../shared/ipc/protocol.js';
import { letGo, listen, stopListening } from './listen.js';

const stopLimitMs = 2000;

/** Owns the servers of this worker, and whether it still takes requests for long. */
export class Listeners {
  readonly #servers: Server[] = [];
  readonly #clock: Clock;
  #isRetiring = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A response now is the last one on its connection. */
  get isRetiring(): boolean {
    return this.#isRetiring;
  }

  /** Rejects when an address can't be used. */
  async open({ host, port, socketPath }: DoorSettings, create: () => Server): Promise<void> {
    // TCP comes last: the primary takes it for the word that this worker listens everywhere.
    for (const address of [...(socketPath === null ? [] : [{ path: socketPath }]), { host, port }]) {
      const server = create();
      await listen(server, address);
      this.#servers.push(server);
    }
  }

  /** Resolves when no response is open any more, soon. */
  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => stopListening(server, this.#clock, stopLimitMs)));
  }

  /** Resolves when the last connection has ended by itself. */
  async retire(limitMs: number): Promise<void> {
    this.#isRetiring = true;
    await Promise.all(this.#servers.map((server) => letGo(server, this.#clock, limitMs)));
  }
}
