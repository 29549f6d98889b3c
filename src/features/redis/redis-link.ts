import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { NotConnected } from './redis-faults.js';
import type { RedisPlace } from './shared.js';

export type RedisArgument = string | number | Buffer;
export type ScriptArguments = Readonly<Record<string, RedisArgument>>;

/** Script files in scripts/. The text of common.lua precedes each of them. */
const scriptFiles = [
  ...(['access', 'answers', 'conversations', 'counters', 'files'] as const),
  ...(['jobs', 'responses', 'tables', 'upkeep'] as const),
] as const;
export type ScriptFile = (typeof scriptFiles)[number];

/** File name and function name, such as `jobs.start`. */
export type ScriptName = `${ScriptFile}.${string}`;

/** The reply of a script, without its time. */
export interface ScriptReply {
  readonly verdict: string;
  readonly remaining: readonly unknown[];
}

/** A connection to Redis. Commands are not resent, and fail at once without a connection. */
export interface RedisLink {
  /** Sends a command. Texts in the reply are buffers. */
  call(command: string, ...args: readonly RedisArgument[]): Promise<unknown>;
  /** Runs a script function. After the Redis time `notAfter`, in ticks, Redis refuses it. */
  script(name: ScriptName, notAfter: number, args: ScriptArguments): Promise<unknown>;
  /** Sets the listener for new connections. There is one listener. */
  onConnected(listener: () => void): void;
  /** Sets the listener for the reasons of missing connections. There is one listener. */
  onTrouble(listener: (error: Error) => void): void;
  /** Number of bytes that the current connection has read. */
  readonly bytesRead: number;
  /** Replaces the connection. */
  reconnect(): void;
  close(): void;
}

const connectLimitMs = 1000;
const slowestRetryMs = 500;
const keepAliveMs = 10_000;
/** A connection without an answer for this long is dead, if Redis answers on another one. */
export const deadLinkMs = 2000;

/** Errors of ioredis without a connection. The reason was reported before. */
const withoutReason = /^MaxRetriesPerRequestError|^Error: (Stream isn't writeable|Connection is closed)/;

type CommandOfScript = (...args: RedisArgument[]) => Promise<unknown>;

/** Creates a connection that connects at once, and again after each loss. */
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
    enableReadyCheck: false, // the probe checks more, and needs no permission for INFO
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest,
    retryStrategy: (times) => Math.min(50 * times, slowestRetryMs),
  });
  // If Redis refuses the database number, ioredis would use database 0, which may belong to another installation.
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
    get bytesRead() {
      return redis.stream?.bytesRead ?? 0;
    },
    reconnect: () => redis.disconnect(true),
    close: () => redis.disconnect(),
  };
}

/** Builds ARGV of a script call, see common.lua. */
function argumentsOf(
  name: ScriptName,
  prefix: string,
  notAfter: number,
  args: ScriptArguments,
): readonly RedisArgument[] {
  return [name.slice(name.indexOf('.') + 1), prefix, notAfter, ...Object.entries(args).flat()];
}

/** First line of a script file that uses functions of other files. */
const included = /^-- with: (.*)\n/;

/** Reads the script files, each with common.lua and the files that it uses. */
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
