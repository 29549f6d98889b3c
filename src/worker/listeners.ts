import type { Server } from 'node:http';
import type { Clock } from '../shared/clock.js';
import type { DoorSettings } from '../shared/ipc/protocol.js';
import { letGo, listen, stopListening } from './listen.js';
import { type HostAndPort, passedSocket } from './passed-socket.js';

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

  /** Rejects when an address can't be used. Resolves with where it listens on a passed socket; null: on none. */
  async open(settings: DoorSettings, create: () => Server): Promise<HostAndPort | null> {
    const { host, port, socketPath, passedFds, keys } = settings;
    const passed = passedFds.map((fd) => passedSocket(fd, keys.length > 0));
    // TCP comes last: the primary takes it for the word that this worker listens everywhere.
    const doors = passed.length > 0 ? passed.map(({ socket }) => socket) : [{ host, port }];
    for (const address of [...(socketPath === null ? [] : [{ path: socketPath }]), ...doors]) {
      const server = create();
      await listen(server, address);
      this.#servers.push(server);
    }
    return passed[0]?.address ?? null;
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
