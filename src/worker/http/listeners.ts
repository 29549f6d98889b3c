import type { HttpServer } from './server.js';

/** Owns the servers of this worker. */
export class Listeners {
  readonly #servers: HttpServer[] = [];
  readonly #closing = new AbortController();

  /** Whether each response is the last one on its connection. */
  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Aborted when this worker is about to exit. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Has a server listen at each of these open addresses. Rejects when one can't be used. */
  async open(fds: readonly number[], create: () => HttpServer): Promise<void> {
    for (const fd of fds) {
      const server = create();
      await server.listen(fd);
      this.#servers.push(server);
    }
  }

  /** From now on, clients that take nothing of their answer are given up after this time. */
  hurry(maxUnreadMs: number): void {
    for (const server of this.#servers) server.hurry(maxUnreadMs);
  }

  /**
   * Resolves when nothing is open any more, after `limitMs` at the latest, with whether every answer was sent. With
   * `retire`, idle connections are left to their keep-alive limit.
   */
  async close(how: 'stop' | 'retire', limitMs: number): Promise<boolean> {
    this.#closing.abort();
    const sent = await Promise.all(this.#servers.map((server) => server[how](limitMs)));
    return sent.every(Boolean);
  }
}
