import type { HealthBody } from '../../../src/shared/api/health.js';
import { freePort } from '../basics/free-port.js';
import { until } from '../basics/until.js';
import { type FrontedHost, type FrontOptions, HaProxy } from './haproxy.js';
import { type LogRecord, type Service, startService } from './service.js';

export interface FleetOptions {
  /** Variables of every host, in addition to the ones that a front needs. */
  readonly env?: Readonly<Record<string, string>>;
  /** Variables of single hosts, by name. */
  readonly envOf?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly front?: FrontOptions;
  /** Number of hosts; default three. */
  readonly size?: number;
}

/** Host of the fleet: a service whose ports stay the same after a restart. */
export class FleetHost implements FrontedHost {
  readonly name: string;
  readonly port: number;
  readonly agentPort: number;
  readonly #env: Readonly<Record<string, string>>;
  #service: Service | null = null;

  constructor(name: string, port: number, agentPort: number, env: Readonly<Record<string, string>>) {
    this.name = name;
    this.port = port;
    this.agentPort = agentPort;
    this.#env = env;
  }

  get service(): Service {
    if (this.#service === null) throw new Error(`host ${this.name} is not there`);
    return this.#service;
  }

  /** Starts the host unless it runs. */
  async start(): Promise<void> {
    if (this.#service !== null) return;
    const ports = { MODEL_API_PORT: String(this.port), MODEL_API_AGENT_PORT: String(this.agentPort) };
    this.#service = await startService({ env: { ...behindFront, ...ports, ...this.#env } });
  }

  /** Kills the primary as at a power failure, except that the workers end its programs. */
  async kill(): Promise<void> {
    const { service } = this;
    this.#service = null;
    service.process.kill('SIGKILL');
    await service.exited;
    await until(async () => (await service.jobProcesses()).length === 0, 'the programs of the killed host to be gone');
    await service.stop();
  }

  /** Stops the primary with a signal: workers live on, and requests that need the primary get no answer. */
  stop(): void {
    this.service.process.kill('SIGSTOP');
  }

  goOn(): void {
    this.#service?.process.kill('SIGCONT');
  }

  /** Drains the host. Resolves with its exit code. */
  async drain(): Promise<number | null> {
    this.goOn();
    const code = await this.#service?.stop();
    this.#service = null;
    return code ?? null;
  }
}

const behindFront = { MODEL_API_TRUST_PROXY: '127.0.0.1', MODEL_API_ALLOWED_HOSTS: 'relay.example.org,127.0.0.1' };
const names = ['a', 'b', 'c'];

/** Several hosts behind HAProxy, all on this machine. */
export class HostFleet implements AsyncDisposable {
  readonly hosts: readonly FleetHost[];
  readonly front: HaProxy;

  private constructor(hosts: readonly FleetHost[], front: HaProxy) {
    this.hosts = hosts;
    this.front = front;
  }

  static async start(options: FleetOptions = {}): Promise<HostFleet> {
    const { env = {}, envOf = {}, size = names.length } = options;
    const hosts: FleetHost[] = [];
    for (const name of names.slice(0, size)) {
      hosts.push(new FleetHost(name, await freePort(), await freePort(), { ...env, ...envOf[name] }));
    }
    try {
      await Promise.all(hosts.map((host) => host.start()));
      const front = await HaProxy.start(hosts, options.front);
      await Promise.all(hosts.map(({ name }) => front.untilSeen(name, ({ isHeard }) => isHeard, 'heard')));
      return new HostFleet(hosts, front);
    } catch (error) {
      await Promise.all(hosts.map((host) => host.drain()));
      throw error;
    }
  }

  get url(): string {
    return this.front.url;
  }

  host(name: string): FleetHost {
    const host = this.hosts.find((one) => one.name === name);
    if (host === undefined) throw new Error(`there is no host ${name}`);
    return host;
  }

  async untilUsed({ name }: FleetHost): Promise<void> {
    await this.front.untilSeen(name, ({ status, weight }) => status === 'UP' && weight > 0, 'up');
  }

  /** Returns the host that answered the request with this id, and its log record. */
  async answerOf(requestId: string): Promise<{ host: FleetHost; record: LogRecord }> {
    return until(() => {
      for (const host of this.hosts) {
        const record = host.service.logs.find((one) => isAnswer(one, requestId));
        if (record !== undefined) return { host, record };
      }
      return null;
    }, `the record of request ${requestId}`);
  }

  /** Number of running jobs on all hosts. */
  async running(): Promise<number> {
    const bodies = await Promise.all(this.hosts.map(({ service }) => service.get('/health')));
    return bodies.reduce(
      (sum, { body }) => sum + (body as unknown as HealthBody).observability.model_runtime.active_requests,
      0,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.hosts.map((host) => host.drain()));
    await this.front[Symbol.asyncDispose]();
  }
}

function isAnswer({ event, request_id }: LogRecord, requestId: string): boolean {
  return event === 'http_request_completed' && request_id === requestId;
}
