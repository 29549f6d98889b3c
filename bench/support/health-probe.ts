import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const everyMs = 25;

/** Owns a client that requests /health continuously, and the times of the answers. */
export class HealthProbe {
  /** Times of the answers since `take`, in milliseconds. */
  #latencies: number[] = [];
  readonly all: number[] = [];
  /** Number of broken connections, such as to a killed worker. */
  broken = 0;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #running: Promise<void>;
  #isStopped = false;

  constructor(port: number) {
    this.#running = this.#ask(port);
  }

  take(): readonly number[] {
    const taken = this.#latencies;
    this.#latencies = [];
    return taken;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    this.#agent.destroy();
  }

  async #ask(port: number): Promise<void> {
    for (; !this.#isStopped; await sleep(everyMs)) {
      const from = performance.now();
      if (!(await this.#answered(port))) this.broken++;
      else {
        const ms = performance.now() - from;
        this.#latencies.push(ms);
        this.all.push(ms);
      }
    }
  }

  #answered(port: number): Promise<boolean> {
    return new Promise((resolve) => {
      get({ host: '127.0.0.1', port, path: '/health', agent: this.#agent }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode === 200));
        response.once('error', () => resolve(false));
      }).once('error', () => resolve(false));
    });
  }
}
