import type { StoreFamily } from '../../shared/config/stores.js';

/** Address of a Redis, and the prefix of this installation's keys. `password` is a secret. */
export interface RedisPlace {
  readonly isSecure: boolean;
  readonly host: string;
  readonly port: number;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
  /** Prefix of every key in Redis. */
  readonly prefix: string;
}

const usualPort = 6379;
const usualPrefix = 'prompt-relay';

export const family = {
  ...{ kind: 'redis', dataPlace: 'redis', isShared: true },
  form: 'redis://[user:password@]host[:port][/database][?prefix=name] (rediss:// with TLS)',
  parsePlace: (text) => {
    const place = redisPlace(text);
    return place && { shown: urlOfRedis(place), password: place.password };
  },
} satisfies StoreFamily;

/** Returns the place that a value of MODEL_API_STORE names; null if it names no Redis. */
export function redisPlace(text: string): RedisPlace | null {
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  const database = /^\/?(\d{0,4})$/.exec(url.pathname)?.[1];
  const { prefix = usualPrefix, ...others } = Object.fromEntries(url.searchParams);
  const isStrange = url.hash !== '' || Object.keys(others).length > 0 || url.port === '0';
  if (url.hostname === '' || database === undefined || isStrange || !/^[\w.-]{1,64}$/.test(prefix)) return null;
  try {
    return {
      isSecure: url.protocol === 'rediss:',
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? usualPort : Number(url.port),
      username: orNull(url.username),
      password: orNull(url.password),
      database: Number(database),
      prefix,
    };
  } catch {
    return null; // a % that escapes nothing
  }
}

/** Returns the URL without user name and password. */
function urlOfRedis({ isSecure, host, port, database, prefix }: RedisPlace): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return `${isSecure ? 'rediss' : 'redis'}://${name}:${port}/${database}?prefix=${prefix}`;
}

function orNull(escaped: string): string | null {
  return escaped === '' ? null : decodeURIComponent(escaped);
}
