import { isIP } from 'node:net';
import { Redis } from 'ioredis';
import type { RedisPlace } from '../../../shared/config/store-place.js';
import { type ScriptName, scripts } from './lua.js';
import { NotConnected } from './redis-faults.js';

export type RedisArgument = string | number | Buffer;

/** What a script has answered. */
export interface ScriptReply {
  readonly verdict: string;
  readonly rest: readonly unknown[];
}

/** One connection to Redis, as far as it is used. Nothing is sent twice, and nothing waits for a connection. */
export interface RedisLink {
  /** Texts in the answer are buffers. */
  call(command: string, ...args: readonly RedisArgument[]): Promise<unknown>;
  script(name: ScriptName, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown>;
  /** `listener` is called whenever there is a connection. There is one listener. */
  onConnected(listener: () => void): void;
  /** `listener` is told why there is none. There is one listener. */
  onTrouble(listener: (error: Error) => void): void;
  /** Gives up the connection and makes another one. */
  reconnect(): void;
  close(): void;
}

const connectLimitMs = 1000;
const slowestRetryMs = 500;
const keepAliveMs = 10_000;
/** Where Redis answers on another connection, and not on this one for so long, this one is dead and does not know it. */
export const deafMs = 2000;

/** Of ioredis: there is no connection. Why, it has told before. */
const saysNothing = /^MaxRetriesPerRequestError|^Error: (Stream isn't writeable|Connection is closed)/;

type CommandOfScript = (...args: RedisArgument[]) => Promise<unknown>;

/** Connects at once, and again whenever the connection is lost. */
export function connectTo(
  { isSecure, host, port, username, password, database: db }: RedisPlace,
  maxRetriesPerRequest: 0 | null = 0,
): Redis {
  const redis = new Redis({
    ...{ host, port, db, username: username ?? undefined, password: password ?? undefined },
    ...(isSecure && { tls: isIP(host) === 0 ? { servername: host } : {} }),
    protocol: 2,
    connectionName: 'prompt-relay',
    disableClientInfo: true,
    connectTimeout: connectLimitMs,
    keepAlive: keepAliveMs,
    enableReadyCheck: false, // a probe tells more, and needs no right to INFO
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest,
    retryStrategy: (times) => Math.min(50 * times, slowestRetryMs),
  });
  // Where it is refused its database, ioredis would go on in database 0, where another installation may be.
  redis.on('error', (error: Error & { readonly command?: { readonly name: string } }) => {
    if (error.command?.name === 'select') redis.disconnect(true);
  });
  return redis;
}

export function linkTo(place: RedisPlace): RedisLink {
  const redis = connectTo(place);
  for (const [name, lua] of Object.entries(scripts)) redis.defineCommand(name, { lua });
  const commands = redis as unknown as Readonly<Record<string, CommandOfScript>>;
  const sent = async (send: () => Promise<unknown>) => {
    if (redis.status !== 'ready') throw new NotConnected();
    return send().catch((error: Error) => {
      throw saysNothing.test(`${error.name}: ${error.message}`) ? new NotConnected() : error;
    });
  };
  return {
    call: (command, ...args) => sent(() => redis.callBuffer(command, ...args)),
    script: (name, keys, args) =>
      sent(async () => commands[`${name}Buffer`]?.call(redis, keys.length, ...keys, ...args)),
    onConnected: (listener) => void redis.on('ready', listener),
    onTrouble: (listener) => {
      redis.on('error', listener);
      redis.on('close', () => listener(new NotConnected('the connection was lost')));
    },
    reconnect: () => redis.disconnect(true),
    close: () => redis.disconnect(),
  };
}
