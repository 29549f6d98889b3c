import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { OperatorAct } from '../../shared/acts.js';
import { inLine } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import { storeUnavailable } from '../../shared/errors.js';
import type { LogEvent, Logger } from '../../shared/log/logger.js';
import type { AuditRecord } from './records.js';
import type { logEvents } from './shared.js';

type AuditLogger = Pick<Logger<LogEvent | keyof typeof logEvents>, 'error'>;

/** Number of records that GET /audit can show. */
export const maxRecords = 1000;
/** Number of records of acts of clients on own keys and data, above which these are removed before those of administrators. */
const maxOwnActs = 500;
/** Size of the end of the file that is read at the start. */
const tailBytes = 512 * 1024;

/**
 * Owns the records of what administrators do. A record is written before its act, so that no act lacks one: if the file
 * cannot be written, the act is refused.
 */
export class AuditLog {
  readonly #path: string | null;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #log: AuditLogger;
  readonly #inLine = inLine();
  readonly #records: AuditRecord[] = [];
  /** Number of these records that are about people's own keys and data. */
  #ownActs = 0;
  /** Whether the last write may have left a part of a line. */
  #isBroken = false;
  #read: Promise<void> | null = null;

  /** `path`: the audit file; null to store the records in memory only. */
  constructor(path: string | null, clock: Pick<Clock, 'now'>, log: AuditLogger) {
    this.#path = path;
    this.#clock = clock;
    this.#log = log;
  }

  /** Writes one record. Rejects with `store_unavailable` if the file cannot be written. */
  recordAct(act: OperatorAct): Promise<void> {
    return this.#inLine(async () => {
      await this.#readOnce();
      const record = { at: new Date(this.#clock.now()).toISOString(), ...act };
      if (this.#path !== null) await this.#append(this.#path, `${JSON.stringify(record)}\n`);
      this.#remember(record);
    });
  }

  /** Returns the newest records, the newest first. */
  list(limit: number): Promise<AuditRecord[]> {
    return this.#inLine(async () => {
      await this.#readOnce();
      return this.#records.slice(-limit).toReversed();
    });
  }

  /** Adds a record to those that can be listed, and removes the oldest one beyond their limits. */
  #remember(record: AuditRecord): void {
    this.#records.push(record);
    if (isOwnAct(record)) this.#ownActs++;
    if (this.#records.length <= maxRecords) return;
    const removesOwn = this.#ownActs > maxOwnActs;
    const [removed] = this.#records.splice(
      this.#records.findIndex((each) => isOwnAct(each) === removesOwn),
      1,
    );
    if (removed !== undefined && isOwnAct(removed)) this.#ownActs--;
  }

  async #append(path: string, line: string): Promise<void> {
    try {
      const file = await open(path, flags, 0o600);
      try {
        const bytes = Buffer.from(this.#isBroken ? `\n${line}` : line);
        const { bytesWritten } = await file.write(bytes);
        if (bytesWritten > 0) this.#isBroken = bytesWritten < bytes.length;
        if (bytesWritten < bytes.length) throw Object.assign(new Error('a part is missing'), { code: 'ENOSPC' });
        await file.datasync().catch(ignoreUnsupported);
      } finally {
        await file.close();
      }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      this.#log.error('audit_failed', { error: code ?? message });
      throw storeUnavailable(`the audit file cannot be written (${code ?? message}), so nothing was done`);
    }
  }

  /** Reads the end of the file before the first use, so that it costs nothing at the start of the service. */
  #readOnce(): Promise<void> {
    this.#read ??= this.#readTail().catch(() => {}); // a file that does not exist yet, or cannot be read
    return this.#read;
  }

  async #readTail(): Promise<void> {
    if (this.#path === null) return;
    const file = await open(this.#path, 'r');
    try {
      const { size } = await file.stat();
      const from = Math.max(0, size - tailBytes);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
      const text = buffer.toString('utf8', 0, bytesRead);
      this.#isBroken = text !== '' && !text.endsWith('\n');
      const lines = text.split('\n').slice(from > 0 ? 1 : 0);
      for (const record of lines.flatMap(recordIn)) this.#remember(record);
    } finally {
      await file.close();
    }
  }
}

/** A FIFO that nobody reads is an error, instead of blocking. */
const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/** Pipes and devices have nothing to sync. */
function ignoreUnsupported(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EINVAL' && error.code !== 'ENOTSUP') throw error;
}

/** Acts that each client may do with its own key. */
const lendingActs: readonly string[] = ['key_lent', 'lent_key_ended'];

/**
 * Whether a client has lent its key, or a person has made, changed or removed an own key, whose client begins with the
 * one of the person.
 */
function isOwnAct({ act, by, target }: AuditRecord): boolean {
  if (act === 'client_exported' || lendingActs.includes(act)) return true;
  return act.startsWith('key_') && target?.startsWith(`${by}/`) === true;
}

/** Returns the record of a line; empty for a line that was cut. */
function recordIn(line: string): AuditRecord[] {
  try {
    const record = JSON.parse(line) as AuditRecord;
    return typeof record.at === 'string' && typeof record.act === 'string' ? [record] : [];
  } catch {
    return [];
  }
}
