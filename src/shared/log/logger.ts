import { constants, fstatSync, openSync, write } from 'node:fs';
import { isatty } from 'node:tty';
import { inspect } from 'node:util';
import { type DestinationStream, pino } from 'pino';
import { type Clock, delay } from '../clock.js';
import { nonBlockingSetter } from '../node-internals/connections.js';

/** Values of `event` in the core, and their meanings. Features add events; docs/monitoring.md lists all events. */
export const logEvents = {
  config_warning: 'a variable or a tool of the host is suspect; the service starts anyway',
  config_invalid: 'a fault in the configuration; the service does not start (exit 78)',
  service_start: 'the primary has started: version, adapter, workers',
  service_ready: 'the first worker listens: address, ports',
  store_opened: 'the store is open: kind, number of conversations and waiting jobs',
  store_down: 'the store fails: error. Logged once, until store_back',
  store_warning: 'the store works, but something is wrong: error. Logged once a minute at most',
  store_back: 'the store works again',
  client_purged: 'an operator removed all data of a client: client',
  keys_loaded: 'a changed keys file is in force: number of keys',
  keys_rejected:
    'the keys file, or the keys that hosts share in a store, have faults, and lines with faults are refused; or they cannot be read, and the old keys stay',
  cli_request_refused: 'the service denied a model CLI access to files, a terminal, a permission or a tool',
  cli_text_ignored: 'the service ignores the greeting of a model CLI; logged once for each',
  tools_ignored: 'provider-hosted tools were ignored: client, path. Logged once an hour',
  model_sizes_not_written:
    'the sizes of models cannot be written to the state folder, and are lost at the next start: error',
  wrong_keys: 'a client sent too many wrong API keys; further ones get 429 for these seconds',
  reload_start: 'SIGHUP: the workers are being replaced',
  reload_complete: 'SIGHUP: all workers have been replaced',
  reload_failed: 'a new worker could not listen; the old one stays',
  readiness_checked: 'a readiness check has finished: status, trigger, duration, error',
  login_renewed: 'the model CLI has renewed its login: duration, end of the new token',
  login_not_renewed: 'the login of the model CLI could not be renewed: duration, seconds until the next try',
  login_ended: 'the renewal of the login was refused: log in anew as the service user',
  orphans_reaped: 'the service killed processes that an earlier service left behind',
  worker_start_failed: 'a worker could not start: error. The primary tries again',
  worker_gone: 'a worker died, or a replaced one exited before it had sent all answers',
  worker_output: 'Node has written to the stderr of a worker, such as a warning: worker, text',
  worker_unresponsive: 'a worker missed its heartbeats or did not listen in time; the primary kills it',
  workers_unavailable: 'no worker could listen; the service ends (exit 69)',
  listen_failed: 'the address cannot be used: error, and what to do (exit 69)',
  http_request_completed: 'a request was answered, or its client disconnected first (status 499)',
  breaker_open: 'the service blocks jobs: reason (quota or auth), end of the wait, model if it is only one',
  breaker_closed: 'a job succeeded, so jobs start again',
  api_busy:
    'the API of the model refuses requests, and jobs wait or fail: reason (quota or overloaded), end of the wait, model if it is only one',
  quota_warning: 'a window of the quota is nearly used up: window, utilization, reset',
  cli_failed: 'a job failed because of its model CLI',
  job_ended: 'a job has ended: request id and outcome. At level info only if its worker died',
  answer_not_spilled: 'a long answer stays in memory, because its file cannot be written: error',
  renewals_paused:
    'renewals or rewindings (`kind`) are paused for this client for an hour, because three processes in a row did not prove what is left in their context: CLI, account, client, kind',
  tree_not_gone: 'processes of a job could not be killed',
  tree_unclear: 'processes that may belong to a job cannot be inspected, or change their id too fast',
  leaving_front: 'a signal has arrived; the drain begins within 3 s, so that the load balancer learns of it first',
  handing_over: 'SIGUSR2 under systemd: new connections wait for the next service: signal, running and queued jobs',
  shutdown_start: 'the drain begins: signal, running and queued jobs',
  shutdown_complete: 'all work is finished',
  shutdown_timeout:
    'the drain time-out or a second signal cut the remaining jobs or answers (exit 1): running and queued jobs that were cut',
  internal_error: 'a defect; please report it',
} as const;

export type LogEvent = keyof typeof logEvents;
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** `E`: the values of `event`. A feature has its own ones in addition. */
export interface Logger<E extends string = LogEvent> {
  debug(event: E, fields?: LogFields): void;
  info(event: E, fields?: LogFields): void;
  warn(event: E, fields?: LogFields): void;
  error(event: E, fields?: LogFields): void;
  /** Writes all buffered records, like `LogDestination.flush`. Called before an exit. */
  flush(): Promise<boolean>;
}

const maxFieldLength = 2000;
/**
 * Limit of the given fields. The rest of the 4,096 bytes is for the fields of every record: time, level, role, pid,
 * event.
 */
const maxFieldsBytes = 3800;
/** Bytes of the longest JSON form of a UTF-16 unit, an escape such as `\u0000`. */
const maxBytesPerUnit = 6;
/** Upper bound for the name and the quotes of a field, or for a number. */
const fieldBytes = 60;

/**
 * Creates a logger that writes one JSON object per line. Each line is shorter than 4,096 bytes, so that a pipe never
 * mixes lines of two processes.
 */
export function createLogger(level: string, role: string, destination: LogDestination): Logger {
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
    flush: () => destination.flush(),
  };
}

/** Shortens long strings, and halves the limit until the fields fit as JSON in UTF-8. */
function bounded(fields: LogFields = {}): LogFields {
  if (areSurelyShort(fields)) return fields;
  for (let limit = maxFieldLength; ; limit = Math.floor(limit / 2)) {
    const cut = withFieldsUpTo(limit, fields);
    if (limit === 0 || Buffer.byteLength(JSON.stringify(cut)) <= maxFieldsBytes) return cut;
  }
}

/** Whether the fields are short by a cheap upper bound, so that most records are not serialized twice. */
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

/** Formats a thrown value with its stack, for defects only. */
export function describeError(thrown: unknown): string {
  const error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : thrown;
  return (typeof error === 'string' ? error : inspect(error)).slice(0, maxFieldLength); // String() throws for some objects
}

/**
 * File descriptor of stdout. Reading `process.stdout.fd` would create a stream, which sets O_NONBLOCK for every process
 * that shares the file.
 */
export const stdoutFd = 1;

/**
 * File descriptor of the log in a worker. Not stdout: libuv and Node change O_NONBLOCK of the first three descriptors
 * when a process starts and exits, for all processes that share the file. A write of the primary would then block.
 */
export const workerLogFd = 4;

/** Open file for a log. */
export interface LogTarget {
  readonly fd: number;
  /** Sets O_NONBLOCK. Called before each write, because other processes may clear the flag. */
  readonly setNonBlocking?: () => void;
}

export interface LogDestination extends DestinationStream {
  /** Writes all records, for at most 1.5 s. Resolves with false if a write is blocked; an exit would wait for it. */
  flush(): Promise<boolean>;
}

/** PIPE_BUF: a pipe accepts a write of this size atomically, so records of different processes do not mix. */
const maxPieceBytes = 4096;
/** Time in which records are gathered for one write, which saves processor time under load. */
const gatherMs = 20;
const maxWaitingBytes = 1024 * 1024;
/** Pause before the next write to a full pipe or socket. */
const retryMs = 100;
const flushRetryMs = 10;
const maxFlushTries = 100;
/** Limit of waits for a write in another thread. A write that is not blocked ends within this time. */
const maxLastWriteTries = 50;

/** Owns the records not yet written. Never blocks the event loop, and drops records if more than 1 MiB is waiting. */
export class LogOutput implements LogDestination {
  readonly #target: LogTarget;
  readonly #clock: Clock;
  readonly #onLost: () => void;
  /** Log lines that are collected until the next write. */
  #gathered = '';
  #gatheredBytes = 0;
  /** Pieces to write, oldest first. The first one may be in a write, or partly written. */
  #pieces: Buffer[] = [];
  #waitingBytes = 0;
  #state: 'idle' | 'writing' | 'full' = 'idle';

  /** Calls `onLost` for each piece that is dropped or cannot be written. */
  constructor(target: LogTarget, clock: Clock, onLost: () => void) {
    this.#target = target;
    this.#clock = clock;
    this.#onLost = onLost;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#gatheredBytes + bytes > maxPieceBytes) this.#addPiece();
    if (this.#gathered === '') this.#clock.after(gatherMs, () => this.#addPiece());
    this.#gathered += line;
    this.#gatheredBytes += bytes;
  }

  async flush(): Promise<boolean> {
    this.#addPiece();
    for (let tries = 0; this.#pieces.length > 0 && tries < maxFlushTries; tries++) {
      this.#retry();
      await delay(this.#clock, flushRetryMs);
      this.#addPiece();
    }
    for (let tries = 0; this.#state === 'writing' && tries < maxLastWriteTries; tries++) {
      await delay(this.#clock, flushRetryMs);
    }
    return this.#state !== 'writing';
  }

  #addPiece(): void {
    if (this.#gathered === '') return;
    const piece = Buffer.from(this.#gathered);
    this.#gathered = '';
    this.#gatheredBytes = 0;
    if (this.#waitingBytes + piece.length > maxWaitingBytes) return this.#onLost();
    this.#pieces.push(piece);
    this.#waitingBytes += piece.length;
    if (this.#state === 'idle') this.#writeFirst();
  }

  #writeFirst(): void {
    const [piece] = this.#pieces;
    this.#state = piece === undefined ? 'idle' : 'writing';
    if (piece === undefined) return;
    this.#target.setNonBlocking?.();
    write(this.#target.fd, piece, (error, bytes) => this.#finish(piece, error, bytes));
  }

  #finish(piece: Buffer, error: NodeJS.ErrnoException | null, bytes: number): void {
    if (error?.code === 'EAGAIN') {
      this.#state = 'full';
      this.#clock.after(retryMs, () => this.#retry());
      return;
    }
    if (error !== null) this.#onLost();
    const unwritten = piece.subarray(error === null ? bytes : piece.length);
    this.#waitingBytes -= piece.length - unwritten.length;
    this.#pieces.splice(0, 1, ...(unwritten.length > 0 ? [unwritten] : []));
    this.#writeFirst();
  }

  #retry(): void {
    if (this.#state === 'full') this.#writeFirst();
  }
}

/** Whether two descriptors refer to the same file, pipe, socket or terminal. False if one is closed. */
export function areSameFile(one: number, other: number): boolean {
  try {
    const [a, b] = [fstatSync(one), fstatSync(other)];
    return a.dev === b.dev && a.ino === b.ino;
  } catch {
    return false;
  }
}

/** Prepares an open file for writes that do not block. Regular files are used unchanged. */
export function openForLog(fd: number): LogTarget {
  return openAgain(fd) ?? shareStream(fd) ?? { fd };
}

/**
 * Opens a pipe or a terminal again with O_NONBLOCK, because the flag belongs to an open file and so to all processes
 * that share it. Null if this is impossible.
 */
function openAgain(fd: number): LogTarget | null {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    if (!fstatSync(fd).isFIFO() && !isatty(fd)) return null;
    return { fd: openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY) };
  } catch {
    return null; // belongs to another user, or is a pipe without a reader
  }
}

/**
 * Prepares a socket or a pipe that cannot be opened again. Sets O_NONBLOCK before each write, because other programs
 * may clear it.
 */
function shareStream(fd: number): LogTarget | null {
  try {
    return { fd, setNonBlocking: nonBlockingSetter(fd) };
  } catch {
    return null; // not a socket or a pipe
  }
}
