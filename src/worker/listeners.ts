import type { DoorSettings } from '../shared/ipc/protocol.js';
import type { HttpServer } from './http-server.js';
import { type HostAndPort, passedSocket } from './passed-socket.js';

/** Owns the servers of this worker, and whether it still takes requests for long. */
export class Listeners {
  readonly #servers: HttpServer[] = [];
  #isClosing = false;

  /** A response now is the last one on its connection. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Rejects when an address can't be used. Resolves with where it listens on a passed socket; null: on none. */
  async open(settings: DoorSettings, create: () => HttpServer): Promise<HostAndPort | null> {
    const { host, port, socketPath, passedFds, keys } = settings;
    const passed = passedFds.map((fd) => passedSocket(fd, keys.length > 0));
    // TCP comes last: the primary takes it for the word that this worker listens everywhere.
    const doors = passed.length > 0 ? passed.map(({ socket }) => socket) : [{ host, port }];
    for (const address of [...(socketPath === null ? [] : [{ path: socketPath }]), ...doors]) {
      const server = create();
      await server.listen(address);
      this.#servers.push(server);
    }
    return passed[0]?.address ?? null;
  }

  /** Resolves when nothing is open any more, after `limitMs` at the latest: with whether every answer had been sent. */
  async stop(limitMs: number): Promise<boolean> {
    this.#isClosing = true;
    const sent = await Promise.all(this.#servers.map((server) => server.stop(limitMs)));
    return sent.every(Boolean);
  }

  /** As `stop`, but idle connections end by themselves. */
  async retire(limitMs: number): Promise<boolean> {
    this.#isClosing = true;
    const sent = await Promise.all(this.#servers.map((server) => server.retire(limitMs)));
    return sent.every(Boolean);
  }
}
