import { z } from 'zod';

/** Where a Redis is, and under which names this installation keeps its things there. `password` is a secret. */
export interface RedisPlace {
  readonly kind: 'redis';
  readonly isSecure: boolean;
  readonly host: string;
  readonly port: number;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
  /** Every key begins with it. */
  readonly prefix: string;
}

const said =
  'must be memory, sqlite:/absolute/path.db or redis://[user:password@]host[:port][/database][?prefix=name] ' +
  '(rediss:// with TLS)';
const usualPort = 6379;
const usualPrefix = 'prompt-relay';

/** Where conversations are kept. The path of a file is absolute: the folder that a service is started in is an accident. */
export const storePlace = z.string().transform((value, context) => {
  const place = placeOf(value);
  if (place !== null) return place;
  context.addIssue(said); // the value may hold a password: it is told nowhere
  return z.NEVER;
});
export type StorePlace = z.output<typeof storePlace>;

function placeOf(value: string) {
  if (value === 'memory') return { kind: 'memory' } as const;
  if (/^sqlite:\/.*[^/]$/.test(value)) return { kind: 'sqlite', path: value.slice('sqlite:'.length) } as const;
  return /^rediss?:\/\//.test(value) && URL.canParse(value) ? redisPlace(new URL(value)) : null;
}

function redisPlace(url: URL): RedisPlace | null {
  const database = /^\/?(\d{0,4})$/.exec(url.pathname)?.[1];
  const { prefix = usualPrefix, ...others } = Object.fromEntries(url.searchParams);
  const isStrange = url.hash !== '' || Object.keys(others).length > 0 || url.port === '0';
  if (url.hostname === '' || database === undefined || isStrange || !/^[\w.-]{1,64}$/.test(prefix)) return null;
  try {
    return {
      kind: 'redis',
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

/** Without the name and the password. */
export function urlOfRedis({ isSecure, host, port, database, prefix }: RedisPlace): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return `${isSecure ? 'rediss' : 'redis'}://${name}:${port}/${database}?prefix=${prefix}`;
}

function orNull(escaped: string): string | null {
  return escaped === '' ? null : decodeURIComponent(escaped);
}
