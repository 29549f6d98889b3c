import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Front, FrontSources } from '../../primary/lifecycle/front.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import type { ValuesOf } from '../../shared/config/feature-variables.js';
import type { variables } from './shared.js';

/**
 * Answers of HAProxy's agent-check. With `drain` alone, HAProxy would still send callers with a sticky session to this
 * host; `down` redirects them. Open connections are not affected. Only the agent can revoke its words, so the answer of
 * a usable host revokes both. HAProxy requires the space before `#`.
 */
const leavingLine = 'drain down #draining';
const startingLine = 'down #starting';
const notReadyLine = 'down #model CLI not ready';

/** Time for a front to learn that this host leaves: three times the check interval in deploy/fleet. */
const leaveMs = 3000;
/** A front that has not checked for this long counts as absent. */
const askedWithinMs = 10_000;
const maxOpen = 32;
const lifeMs = 1000;

type AgentState =
  | { readonly name: 'serving' }
  | { readonly name: 'leaving'; readonly proceed: () => void }
  | { readonly name: 'left' };

/** Opens the port if it is configured. */
export async function openAgent(
  { MODEL_API_AGENT_PORT: port }: ValuesOf<typeof variables>,
  host: string,
  clock: Clock,
): Promise<HealthAgent | null> {
  return port === null ? null : HealthAgent.listen(host, port, clock);
}

/**
 * Owns the port at which a front such as HAProxy checks the state of this host. Each connection gets one line and is
 * closed, whatever it sends. The number of open connections is limited, and none stays open for longer than a second.
 */
export class HealthAgent implements Front {
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #open = new Map<Socket, StopTimer>();
  #line: () => string = () => startingLine;
  #state: AgentState = { name: 'serving' };
  #askedMs: number | null = null;

  /** Opens the port. Rejects with the error of the system, such as EADDRINUSE. */
  static async listen(host: string, port: number, clock: Clock): Promise<HealthAgent> {
    const server = createServer();
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return new HealthAgent(server, clock);
  }

  private constructor(server: Server, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
    server.on('error', () => {}); // failed accepts, for example without a free descriptor
    server.on('connection', (socket) => this.#answer(socket));
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  get isAsked(): boolean {
    const isRecent = this.#askedMs !== null && this.#clock.monotonicMs() - this.#askedMs < askedWithinMs;
    return this.#state.name === 'serving' && isRecent;
  }

  serve(sources: FrontSources): void {
    this.#line = () => agentLine(sources);
  }

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

  closePort(): void {
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
    // The oldest connection already has its line.
    if (oldest !== undefined && this.#open.size >= maxOpen) this.#end(oldest);
    this.#open.set(
      socket,
      this.#clock.after(lifeMs, () => this.#end(socket)),
    );
    socket.on('error', () => {}).on('close', () => this.#end(socket));
    // Unread input would turn the end into a reset, which can overtake the line.
    socket.resume().end(`${this.#line()}\n`);
  }

  #end(socket: Socket): void {
    this.#open.get(socket)?.();
    this.#open.delete(socket);
    socket.destroy();
  }
}

/**
 * Builds the answer. A host without a usable model CLI is down: because jobs fail there at once, its load would be the
 * lowest, and the front would send all callers to it.
 */
export function agentLine({ supervisor, clis, slots }: FrontSources): string {
  if (supervisor.phase === 'starting') return startingLine;
  if (supervisor.phase !== 'ready') return leavingLine;
  if (clis.every(({ health }) => health.checks.current.status === 'not_ready')) return notReadyLine;
  return `up ready ${freePercent(slots)}%`;
}

/**
 * Share of the host in percent that one more job would get: 100 if idle, 50 if all slots are taken, 33 if as many jobs
 * wait as run, at least 1. The value falls no faster than the load rises, because the front learns the load up to a
 * second late: a steeper one would flood and empty each host in turn.
 */
function freePercent({ active, waiting, limits }: FrontSources['slots']): number {
  const { maxActive } = limits;
  return Math.max(1, Math.round((100 * maxActive) / (maxActive + active + waiting)));
}
