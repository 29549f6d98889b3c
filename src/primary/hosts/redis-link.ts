import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { RedisPlace } from '../../shared/config/values.js';
import { NotConnected } from './redis-faults.js';

export type RedisArgument = string | number | Buffer;
export type ScriptArguments = Readonly<Record<string, RedisArgument>>;

/** The files in scripts/ whose functions are called; common.lua stands before each of them. */
const scriptFiles = ['answers', 'conversations', 'counters', 'jobs', 'responses', 'upkeep'] as const;
export type ScriptFile = (typeof scriptFiles)[number];

/** A file and a function in it, such as `jobs.start`. */
export type ScriptName = `${ScriptFile}.${string}`;

/** The answer of a script. */
export interface ScriptReply {
  readonly verdict: string;
  readonly rest: readonly unknown[];
}

/** One connection to Redis. It sends nothing twice, and no command waits for a connection. */
export interface RedisLink {
  /** Texts in the answer are buffers. */
  call(command: string, ...args: readonly RedisArgument[]): Promise<unknown>;
  /** Does nothing after that time of Redis, in ticks. */
  script(name: ScriptName, notAfter: number, args: ScriptArguments): Promise<unknown>;
  /** `listener` is called for each new connection. There is one listener. */
  onConnected(listener: () => void): void;
  /** `listener` gets the reason why there is none. There is one listener. */
  onTrouble(listener: (error: Error) => void): void;
  /** Closes the connection and opens another one. */
  reconnect(): void;
  close(): void;
}

const connectLimitMs = 1000;
const slowestRetryMs = 500;
const keepAliveMs = 10_000;
/** A connection without an answer for so long is dead, if Redis answers on another one. */
export const deadLinkMs = 2000;

/** Of ioredis: there is no connection. It has reported the reason before. */
const withoutReason = /^MaxRetriesPerRequestError|^Error: (Stream isn't writeable|Connection is closed)/;

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
    enableReadyCheck: false, // a probe checks more, and needs no right to INFO
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest,
    retryStrategy: (times) => Math.min(50 * times, slowestRetryMs),
  });
  // When Redis refuses the database, ioredis would use database 0, which may belong to another installation.
  redis.on('error', (error: Error & { readonly command?: { readonly name: string } }) => {
    if (error.command?.name === 'select') redis.disconnect(true);
  });
  return redis;
}

export function linkTo(place: RedisPlace, scripts: ReadonlyMap<ScriptFile, string>): RedisLink {
  const redis = connectTo(place);
  for (const [file, lua] of scripts) redis.defineCommand(file, { lua, numberOfKeys: 0 });
  const commands = redis as unknown as Readonly<Record<string, CommandOfScript>>;
  const sent = async (send: () => Promise<unknown>) => {
    if (redis.status !== 'ready') throw new NotConnected();
    return send().catch((error: Error) => {
      throw withoutReason.test(`${error.name}: ${error.message}`) ? new NotConnected() : error;
    });
  };
  return {
    call: (command, ...args) => sent(() => redis.callBuffer(command, ...args)),
    script: (name, notAfter, args) =>
      sent(async () => {
        const [file] = name.split('.');
        return commands[`${file}Buffer`]?.call(redis, ...argumentsOf(name, place.prefix, notAfter, args));
      }),
    onConnected: (listener) => void redis.on('ready', listener),
    onTrouble: (listener) => {
      redis.on('error', listener);
      redis.on('close', () => listener(new NotConnected('the connection was lost')));
    },
    reconnect: () => redis.disconnect(true),
    close: () => redis.disconnect(),
  };
}

/** ARGV of a call: see common.lua. */
function argumentsOf(
  name: ScriptName,
  prefix: string,
  notAfter: number,
  args: ScriptArguments,
): readonly RedisArgument[] {
  return [name.slice(name.indexOf('.') + 1), prefix, notAfter, ...Object.entries(args).flat()];
}

/** First line of a file that needs the functions of others. */
const included = /^-- with: (.*)\n/;

/** The text of each script file, with all that it needs. */
export async function readScripts(): Promise<ReadonlyMap<ScriptFile, string>> {
  const read = (name: string) => readFile(join(__dirname, 'scripts', `${name}.lua`), 'utf8');
  const texts = scriptFiles.map(async (name) => {
    const text = await read(name);
    const before = included.exec(text)?.[1]?.split(' ') ?? [];
    const parts = [...(await Promise.all(['common', ...before].map(read))), text, 'return scripts[ARGV[1]]()'];
    return [name, parts.join('\n')] as const;
  });
  return new Map(await Promise.all(texts));
}
