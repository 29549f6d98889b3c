import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { openRedis, type RedisStore } from '../../../src/features/redis/hosts.js';
import type { RedisLimits } from '../../../src/features/redis/redis-conversations.js';
import type { RedisJobLimits } from '../../../src/features/redis/redis-jobs.js';
import { type RedisPlace, redisPlace } from '../../../src/features/redis/shared.js';
import { features } from '../../../src/features.js';
import { systemClock } from '../../../src/shared/clock.js';
import { type TemporaryFolder, temporaryFolder } from '../basics/folder.js';
import { freePort } from '../basics/free-port.js';
import { until } from '../basics/until.js';

export const redisServer = '/usr/bin/redis-server';

/** Real redis-server on a free loopback port. */
export class RedisServer implements AsyncDisposable {
  readonly port: number;
  readonly #folder: TemporaryFolder;
  readonly #options: readonly string[];
  #process: ChildProcess | null = null;

  constructor(port: number, folder: TemporaryFolder, options: readonly string[]) {
    this.port = port;
    this.#folder = folder;
    this.#options = options;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the server; resolves when it answers. With an append-only file, earlier data is loaded. */
  async start(...options: readonly string[]): Promise<void> {
    const serverOptions = [
      '--port',
      String(this.port),
      '--bind',
      '127.0.0.1',
      '--dir',
      this.#folder.path,
      '--save',
      '',
    ];
    const args = [...serverOptions, ...this.#options, ...options];
    this.#process = spawn(redisServer, args, { stdio: 'ignore' });
    await until(() => this.ask('PING').catch(() => null), 'redis-server to answer');
  }

  /** Resolves when the server has exited. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const server = this.#process;
    this.#process = null;
    if (server === null || server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill(signal);
    if (signal !== 'SIGKILL') server.kill('SIGCONT');
    await exited;
  }

  stop(): void {
    this.#process?.kill('SIGSTOP');
  }

  goOn(): void {
    this.#process?.kill('SIGCONT');
  }

  /** Sends a command on a new connection. Rejects with Redis's error. */
  async ask(...words: readonly string[]): Promise<unknown> {
    return this.as(null, ...words);
  }

  async as(password: string | null, ...words: readonly string[]): Promise<unknown> {
    const [command = '', ...args] = words;
    const redis = new Redis({
      port: this.port,
      password: password ?? undefined,
      protocol: 2,
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
    });
    redis.on('error', () => {});
    try {
      await redis.connect();
      return await redis.call(command, ...args);
    } finally {
      redis.disconnect();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
    await this.#folder[Symbol.asyncDispose]();
  }
}

export async function startRedis(...options: readonly string[]): Promise<RedisServer> {
  const server = new RedisServer(await freePort(), await temporaryFolder(), options);
  await server.start();
  return server;
}

const usualJobLimits: RedisJobLimits = { maxJobs: 1000, maxBytes: 1_000_000, ttlMs: 3_600_000 };

const tables = features.flatMap((feature) => feature.tables);

export function placeOf(url: string): RedisPlace {
  const place = redisPlace(url);
  if (place === null) throw new Error(`${url} names no Redis`);
  return place;
}

/** Opens the store of one host, with the tables of all features. */
export function openRedisAt(url: string, limits: RedisLimits, jobs = usualJobLimits): Promise<RedisStore> {
  return openRedis(placeOf(url), systemClock, { ...limits, jobs, tables });
}
