import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { leavingLine, startingLine } from './agent-line.js';

/** Three times the interval at which the front of deploy/workers asks. */
const leaveMs = 3000;
/** Whoever has not asked for so long is not there. */
const askedWithinMs = 10_000;
const maxOpen = 32;
const lifeMs = 1000;

type AgentState =
  | { readonly name: 'serving' }
  | { readonly name: 'leaving'; readonly proceed: () => void }
  | { readonly name: 'left' };

/**
 * Owns the port at which a front such as HAProxy asks how this host is. Each connection gets one line and is closed; what
 * it sends is not looked at. However many are opened, few stay, and none for longer than a second.
 */
export class AgentPort {
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #open = new Map<Socket, StopTimer>();
  #line: () => string = () => startingLine;
  #state: AgentState = { name: 'serving' };
  #askedMs: number | null = null;

  /** Rejects with the error of the system, such as EADDRINUSE. */
  static async listen(host: string, port: number, clock: Clock): Promise<AgentPort> {
    const server = createServer();
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return new AgentPort(server, clock);
  }

  private constructor(server: Server, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
    server.on('error', () => {}); // a connection that can't be accepted, for want of descriptors
    server.on('connection', (socket) => this.#answer(socket));
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Whether somebody asks regularly, and has not been told yet that the host leaves. */
  get isAsked(): boolean {
    const isRecent = this.#askedMs !== null && this.#clock.monotonicMs() - this.#askedMs < askedWithinMs;
    return this.#state.name === 'serving' && isRecent;
  }

  /** `line` says how the host is. Before this call it is starting. */
  serve(line: () => string): void {
    this.#line = line;
  }

  /**
   * From now on the host leaves. Resolves when those who ask have had the time to hear of it: at once where nobody asks,
   * or at the next call. Returns whether this is the call that goes on from there.
   */
  async leave(): Promise<boolean> {
    if (this.#state.name === 'left') return true;
    if (this.#state.name === 'leaving') {
      this.#state.proceed();
      return false;
    }
    const { isAsked } = this;
    this.#line = () => leavingLine;
    if (isAsked) await this.#untilHeard();
    this.#state = { name: 'left' };
    return true;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#open.keys()) this.#end(socket);
  }

  #untilHeard(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#clock.after(leaveMs, resolve);
      const proceed = () => {
        stop();
        resolve();
      };
      this.#state = { name: 'leaving', proceed };
    });
  }

  #answer(socket: Socket): void {
    this.#askedMs = this.#clock.monotonicMs();
    const [oldest] = this.#open.keys();
    if (oldest !== undefined && this.#open.size >= maxOpen) this.#end(oldest); // it has its answer
    this.#open.set(
      socket,
      this.#clock.after(lifeMs, () => this.#end(socket)),
    );
    socket.on('error', () => {}).on('close', () => this.#end(socket));
    socket.resume().end(`${this.#line()}\n`); // with something unread the end would be a reset, which can overtake the line
  }

  #end(socket: Socket): void {
    this.#open.get(socket)?.();
    this.#open.delete(socket);
    socket.destroy();
  }
}
