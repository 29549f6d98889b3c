import { clip, escaped, type Paint, paintFor } from '../text/paint.js';
import type { LogDestination, LogEvent, LogFields } from './logger.js';

export const logFormats = ['auto', 'json', 'text'] as const;

/** Styles of the log: a JSON object per line, or a readable line without or with colours. */
export const logStyles = ['json', 'plain', 'coloured'] as const;
export type LogStyle = (typeof logStyles)[number];

interface ColourSettings {
  readonly NO_COLOR?: string | undefined;
  readonly TERM?: string | undefined;
}

/** Chooses the style. `auto` and unknown formats select readable lines at a terminal, and JSON otherwise. */
export function logStyleFor(format: string | undefined, isTerminal: boolean, env: ColourSettings): LogStyle {
  if (format === 'json' || (format !== 'text' && !isTerminal)) return 'json';
  return isTerminal && !env.NO_COLOR && env.TERM !== 'dumb' ? 'coloured' : 'plain';
}

type Field = LogFields[string];
/** Fields of a record with escaped text, so that it cannot control a terminal. */
type Fields = LogFields;
type LogSentence = (fields: Fields) => string;

/** Sentences of the readable log by event. An event without a sentence is shown as its name and its fields. */
const logSentences: Readonly<Partial<Record<LogEvent, LogSentence>>> = {
  config_warning: ({ warning }) => `Warning: ${warning}`,
  config_invalid: ({ error }) => `Fault: ${error}`,
  service_start: ({ version, adapter, workers }) =>
    `prompt-relay ${version} starts: ${adapter}, ${counted(workers, 'worker')}`,
  store_opened: ({ store, conversations }) => `Store opened (${store}): ${counted(conversations, 'conversation')}.`,
  store_down: ({ error }) => `The store is down; conversations fail: ${error}`,
  store_warning: ({ error }) => `Store warning: ${error}`,
  store_back: () => 'The store works again.',
  keys_loaded: ({ keys }) => `The changed keys file is in use: ${counted(keys, 'key')}.`,
  keys_rejected: ({ error }) => `The keys have faults, and lines with faults are refused: ${error}`,
  cli_text_ignored: ({ cli }) => `${cli} writes text before its first turn; no answer contains this text.`,
  cli_request_refused: ({ cli, request }) => `${cli} requested something that the service denies: ${request}.`,
  tools_ignored: ({ client, path }) => `${client} sent provider-hosted tools; they were ignored (${path}).`,
  wrong_keys: ({ client, seconds }) =>
    `Too many wrong API keys from ${client}: further ones are refused for ${seconds} s.`,
  reload_start: () => 'Reload: the workers are being replaced.',
  reload_complete: () => 'Reload: all workers have been replaced.',
  readiness_checked: ({ cli, status, error, check_ms: ms }) => {
    const name = cli === undefined ? 'The model CLI' : `The model CLI ${cli}`;
    return status === 'ready' ? `${name} is ready (checked in ${ms} ms).` : `${name} is not ready: ${error}`;
  },
  orphans_reaped: ({ processes }) =>
    `Ended ${counted(processes, 'process', 'processes')} of an earlier service that died.`,
  worker_gone: ({ worker, code, signal }) => `Worker ${worker} exited (${signal ?? `code ${code}`}).`,
  worker_output: ({ worker, text }) => `Worker ${worker}: ${String(text).trimEnd()}`,
  workers_unavailable: ({ reason }) => `The service exits: ${reason}`,
  listen_failed: ({ error }) => String(error),
  breaker_open: ({ reason, model, until }) =>
    `Jobs${model ? ` for ${model}` : ''} are blocked (${reason})${until ? ` until ${until}` : ''}.`,
  breaker_closed: ({ model }) => `Jobs${model ? ` for ${model}` : ''} start again.`,
  api_busy: ({ reason, model, until }) =>
    `The API of the model${model ? ` ${model}` : ''} refuses requests (${reason}) until ${until}: jobs wait or fail.`,
  quota_warning: (fields) => `A window of the account's quota is nearly used up: ${listOf(fields)}`,
  cli_failed: ({ request_id: id, code, reason, stderr }) =>
    `A job failed: ${code}${reason ? ` (${reason})` : ''}, request ${id}${stderr ? `. Its error output: ${stderr}` : ''}`,
  shutdown_start: ({ signal, running, queued }) =>
    Number(running) + Number(queued) === 0
      ? `The service shuts down (${signal}).`
      : `The service shuts down (${signal}): ${running} running and ${queued} waiting jobs are finished first; a second signal cuts them off.`,
  shutdown_complete: () => 'All work is finished.',
  shutdown_timeout: ({ running, queued }) =>
    Number(running) + Number(queued) === 0
      ? 'Answers were cut off, because their clients did not read them in time.'
      : `Jobs were cut off: ${running} running and ${queued} waiting jobs.`,
  internal_error: ({ error, request_id: id }) => `A defect, please report it: ${error}${id ? ` (request ${id})` : ''}`,
};

function counted(count: Field, noun: string, nouns = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : nouns}`;
}

function listOf({ window, utilization, resets_at: reset }: Fields): string {
  const used = typeof utilization === 'number' ? `${Math.round(utilization * 100)} % of ${window}` : `${window}`;
  return reset ? `${used}, reset at ${reset}` : used;
}

const pathColumns = 22;

/** Formats a request: method, path, status, milliseconds, client, and its outcome or error if any. */
function requestLine(fields: Fields, paint: Paint): string {
  const { method, path, status_code: status, duration_ms: ms, client, outcome, error } = fields;
  const end = outcome ?? error;
  return [
    String(method).padEnd(4),
    String(path).padEnd(pathColumns),
    colourOf(Number(status), paint)(String(status)),
    `${Math.round(Number(ms))} ms`.padStart(9),
    paint.dim(String(client ?? '')),
    end === undefined ? '' : end === 'ok' ? paint.green(end) : paint.yellow(String(end)),
  ]
    .join('  ')
    .trimEnd();
}

function colourOf(status: number, paint: Paint): (text: string) => string {
  if (status >= 500) return paint.red;
  return status >= 400 ? paint.yellow : paint.green;
}

/** A record of the log, parsed from its JSON. */
type ReadRecord = LogFields & { readonly time: string; readonly level: string; readonly event: string };

/**
 * Limit of a line in characters. At four bytes each, a line stays below the 4,096 bytes that a pipe accepts atomically.
 */
const maxColumns = 900;

/** Returns a destination that writes the log to `output` in this style. */
export function logIn(style: LogStyle, output: LogDestination): LogDestination {
  return style === 'json' ? output : new TextLog(output, paintFor(style === 'coloured'));
}

/** Writes one readable line per record. Owns the last result of a readiness check, to skip repeated results. */
class TextLog implements LogDestination {
  readonly #output: LogDestination;
  readonly #paint: Paint;
  #lastReadiness = '';

  constructor(output: LogDestination, paint: Paint) {
    this.#output = output;
    this.#paint = paint;
  }

  write(line: string): void {
    const record = JSON.parse(line) as ReadRecord;
    if (record.event === 'service_ready' || this.#isKnown(record)) return; // a banner replaces `service_ready`
    this.#output.write(`${renderRecord(record, this.#paint)}\n`);
  }

  flush(): Promise<boolean> {
    return this.#output.flush();
  }

  #isKnown({ event, status, error, trigger }: ReadRecord): boolean {
    if (event !== 'readiness_checked') return false;
    const found = `${status} ${error}`;
    const isKnown = found === this.#lastReadiness && trigger === 'interval';
    this.#lastReadiness = found;
    return isKnown;
  }
}

/** Formats a record as one line. The fields cannot control the terminal or imitate another line. */
function renderRecord(record: ReadRecord, paint: Paint): string {
  const safe = escapedFields(record);
  return clip(`${paint.dim(timeOf(record.time))}  ${textOf(safe, paint)}`, maxColumns);
}

function textOf(record: ReadRecord, paint: Paint): string {
  if (record.event === 'http_request_completed') return requestLine(record, paint);
  const sentence = Object.hasOwn(logSentences, record.event) ? logSentences[record.event as LogEvent] : undefined;
  const text = sentence === undefined ? listed(record) : sentence(record);
  if (record.level === 'error') return paint.red(text);
  return record.level === 'warn' ? paint.yellow(text) : text;
}

const commonFields = ['time', 'level', 'role', 'pid', 'event'];

/** Formats the name and the fields of an event without a sentence. */
function listed(record: ReadRecord): string {
  const fields = Object.entries(record).filter(([name, value]) => !commonFields.includes(name) && value !== null);
  const texts = fields.map(([name, value]) => `${name} ${value}`);
  const name = record.event.replaceAll('_', ' ');
  return texts.length === 0 ? name : `${name}: ${texts.join(', ')}`;
}

function escapedFields(record: ReadRecord): ReadRecord {
  const entries = Object.entries(record).map(([name, value]) => [
    escaped(name),
    typeof value === 'string' ? escaped(value.trimEnd().replace(/\s*\n\s*/g, ' | ')) : value,
  ]);
  return Object.fromEntries(entries) as ReadRecord;
}

/** Formats the time of day in the time zone of the machine. */
function timeOf(time: string): string {
  const at = new Date(time);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}
