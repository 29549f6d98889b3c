import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Clock, StopTimer } from '../../shared/clock.js';
import type { ReadinessEntry } from '../../shared/health.js';
import type { Phase } from '../../shared/phase.js';

/**
 * The state of this host, in the words of HAProxy's agent-check. After `drain` alone, HAProxy would still send callers who
 * are tied to it; `down` sends them elsewhere. Neither affects open connections. Only the agent can revoke its words, so the
 * answer of a usable host revokes both. Without the space before its `#`, HAProxy would not know the word.
 */
const leavingLine = 'drain down #draining';
const startingLine = 'down #starting';
const notReadyLine = 'down #model CLI not ready';

/** Three times the interval at which the front of deploy/fleet asks. */
const leaveMs = 3000;
/** A front that has not asked for so long is not there. */
const askedWithinMs = 10_000;
const maxOpen = 32;
const lifeMs = 1000;

type AgentState =
  | { readonly name: 'serving' }
  | { readonly name: 'leaving'; readonly proceed: () => void }
  | { readonly name: 'left' };

/**
 * Owns the port at which a front such as HAProxy asks for the state of this host. Each connection gets one line and is
 * closed, whatever it sends. However many are opened, few stay, and none for longer than a second.
 */
export class HealthAgent {
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #open = new Map<Socket, StopTimer>();
  #line: () => string = () => startingLine;
  #state: AgentState = { name: 'serving' };
  #askedMs: number | null = null;

  /** Rejects with the error of the system, such as EADDRINUSE. */
  static async listen(host: string, port: number, clock: Clock): Promise<HealthAgent> {
    const server = createServer();
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return new HealthAgent(server, clock);
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

  /** Whether a front asks regularly, and does not know yet that the host leaves. */
  get isAsked(): boolean {
    const isRecent = this.#askedMs !== null && this.#clock.monotonicMs() - this.#askedMs < askedWithinMs;
    return this.#state.name === 'serving' && isRecent;
  }

  /** Before this call the host is starting. */
  serve(sources: AgentSources): void {
    this.#line = () => agentLine(sources);
  }

  /**
   * From now on the host leaves. Resolves when a front has had the time to ask: at once if none asks regularly, or at the
   * next call. Returns whether this is the call that continues from there.
   */
  async leave(): Promise<boolean> {
    if (this.#state.name === 'left') return true;
    if (this.#state.name === 'leaving') {
      this.#state.proceed();
      return false;
    }
    const { isAsked } = this;
    this.#line = () => leavingLine;
    if (isAsked) await this.#untilAsked();
    this.#state = { name: 'left' };
    return true;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#open.keys()) this.#end(socket);
  }

  #untilAsked(): Promise<void> {
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

/** The owners of what the answer reports. */
export interface AgentSources {
  readonly supervisor: { readonly phase: Phase };
  readonly clis: readonly {
    readonly health: { readonly checks: { readonly current: Pick<ReadinessEntry, 'status'> } };
  }[];
  readonly slots: {
    readonly active: number;
    readonly waiting: number;
    readonly limits: { readonly maxActive: number };
  };
}

/** A host whose model CLI fails at once would seem the least busy one, and attract all callers. */
export function agentLine({ supervisor, clis, slots }: AgentSources): string {
  if (supervisor.phase === 'starting') return startingLine;
  if (supervisor.phase !== 'ready') return leavingLine;
  if (clis.every(({ health }) => health.checks.current.status === 'not_ready')) return notReadyLine;
  return `up ready ${freePercent(slots)}%`;
}

/**
 * The share of the host that one more job would get: 100 when it is idle, 50 when every slot is taken, 33 when as many
 * wait as run, never 0. It falls no faster than the load rises: else each host would be flooded and avoided in turn, because
 * the front learns of its load up to a second late.
 */
function freePercent({ active, waiting, limits }: AgentSources['slots']): number {
  const { maxActive } = limits;
  return Math.max(1, Math.round((100 * maxActive) / (maxActive + active + waiting)));
}
