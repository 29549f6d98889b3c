import { pino } from 'pino';
import type { FlushableStream } from './log-output.js';

/** Every value of `event`, with what it says. The list is closed; the README shows it. */
export const logEvents = {
  config_warning: 'a variable, or a tool of the host, looks wrong but the service can start',
  config_invalid: 'the configuration has faults; the service does not start (exit 78)',
  service_start: 'the primary has started: version, adapter, workers',
  service_ready: 'the first worker listens: address and port',
  reload_start: 'SIGHUP: the workers are being replaced',
  reload_complete: 'SIGHUP: every worker has its successor',
  reload_failed: 'the successor of a worker could not listen; the old one stays',
  readiness_checked: 'a readiness check has ended: status, trigger, time, fault',
  orphans_reaped: 'processes that a dead predecessor had left behind were ended',
  worker_start_failed: 'the system could not start a worker: error; it is tried again',
  worker_gone: 'a worker has died, or one that was replaced has left answers unsent',
  worker_unresponsive:
    'a worker missed its heartbeats or did not listen in time, and is killed; or even that did not end it',
  workers_unavailable: 'no worker could start to listen; the service gives up (exit 69)',
  listen_failed: 'a worker cannot listen at the configured address',
  http_request_completed:
    'a request has been answered, or its client has gone (status 499): which client, and of an error its code',
  cli_failed: 'a job failed because of its model CLI: request id, error code and, where there is one, reason',
  tree_not_gone: 'processes of a job could not be ended',
  shutdown_start: 'drain begins: signal, running and queued jobs',
  shutdown_complete: 'all work finished',
  shutdown_timeout: 'the drain time-out, or a second signal, cut the work that was left (exit 1)',
  internal_error: 'a defect: please report it',
} as const;

export type LogEvent = keyof typeof logEvents;
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Logger {
  debug(event: LogEvent, fields?: LogFields): void;
  info(event: LogEvent, fields?: LogFields): void;
  warn(event: LogEvent, fields?: LogFields): void;
  error(event: LogEvent, fields?: LogFields): void;
  /** Writes out what is buffered; for the last moment before an exit. */
  flush(): void;
}

const maxFieldLength = 2000;
/** Leaves room for what every record has: time, level, role, pid, event. */
const maxFieldsBytes = 3800;
/** A UTF-16 unit as JSON in UTF-8, at its longest: `\u0000`. */
const maxBytesPerUnit = 6;
/** A field without the characters of its text: a name, quotes, a number. */
const fieldBytes = 60;

/** One JSON object a line, each under 4 KB, so that lines of several processes never mix in a pipe. */
export function createLogger(level: string, role: string, destination: FlushableStream): Logger {
  const log = pino(
    {
      level,
      base: { role, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  return {
    debug: (event, fields) => log.debug({ event, ...bounded(fields) }),
    info: (event, fields) => log.info({ event, ...bounded(fields) }),
    warn: (event, fields) => log.warn({ event, ...bounded(fields) }),
    error: (event, fields) => log.error({ event, ...bounded(fields) }),
    flush: () => destination.flushSync(),
  };
}

/** Cuts long strings, and where that is not enough because they grow when written as JSON in UTF-8, cuts them further. */
function bounded(fields: LogFields = {}): LogFields {
  if (areSurelyShort(fields)) return fields;
  for (let limit = maxFieldLength; ; limit = Math.floor(limit / 2)) {
    const cut = withFieldsUpTo(limit, fields);
    if (limit === 0 || Buffer.byteLength(JSON.stringify(cut)) <= maxFieldsBytes) return cut;
  }
}

/** Most records are: then nothing is written twice. */
function areSurelyShort(fields: LogFields): boolean {
  let bytes = 0;
  for (const name in fields) {
    const value = fields[name];
    bytes += fieldBytes + (typeof value === 'string' ? value.length * maxBytesPerUnit : 0);
  }
  return bytes <= maxFieldsBytes;
}

function withFieldsUpTo(limit: number, fields: LogFields): LogFields {
  const entries = Object.entries(fields);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'string' ? value.slice(0, limit) : value]),
  );
}

/** For defects only: name, message and stack of a thrown value. */
export function describeError(thrown: unknown): string {
  const error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  return error.slice(0, maxFieldLength);
}
