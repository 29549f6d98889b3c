import type { HealthBody } from '../../../src/shared/api/health.js';
import { freePort } from '../free-port.js';
import { type LogRecord, type Service, startService } from '../service.js';
import { until } from '../until.js';
import { type FrontedHost, type FrontOptions, HaProxy } from './haproxy.js';

export interface FleetOptions {
  /** Of every host, beside what a host behind a front needs. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of single hosts, by their names. */
  readonly envOf?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly front?: FrontOptions;
  /** How many there are: three, where nothing is said. */
  readonly size?: number;
}

/** One host of the fleet: a service at ports that stay the same when it is started again. */
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

  async start(): Promise<void> {
    const own = { MODEL_API_PORT: String(this.port), MODEL_API_AGENT_PORT: String(this.agentPort) };
    this.#service = await startService({ env: { ...behindFront, ...own, ...this.#env } });
  }

  /** As when its power fails, but that its programs are ended by its workers. */
  async kill(): Promise<void> {
    const { service } = this;
    this.#service = null;
    service.process.kill('SIGKILL');
    await service.exited;
    await until(async () => (await service.jobProcesses()).length === 0, 'the programs of the killed host to be gone');
    await service.stop();
  }

  /** Its primary stands still: its workers live on, and answer nothing that needs it. */
  stop(): void {
    this.service.process.kill('SIGSTOP');
  }

  goOn(): void {
    this.#service?.process.kill('SIGCONT');
  }

  /** Drains. Resolves with its exit code. */
  async drain(): Promise<number | null> {
    this.goOn();
    const code = await this.#service?.stop();
    this.#service = null;
    return code ?? null;
  }
}

const behindFront = {
  MODEL_API_TRUST_PROXY: '127.0.0.1',
  MODEL_API_ALLOWED_HOSTS: 'relay.example.org,127.0.0.1',
};
const names = ['a', 'b', 'c'];

/** Three hosts behind HAProxy, all on this machine. */
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

  /** The host that has answered the request with this id, with its record of it. */
  async answerOf(requestId: string): Promise<{ host: FleetHost; record: LogRecord }> {
    return until(() => {
      for (const host of this.hosts) {
        const record = host.service.logs.find((one) => isAnswer(one, requestId));
        if (record !== undefined) return { host, record };
      }
      return null;
    }, `the record of request ${requestId}`);
  }

  /** Jobs that run, on all hosts. */
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
