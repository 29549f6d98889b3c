import type { LogDestination } from './log-output.js';
import { type LogSentence, logSentences, requestLine } from './log-sentences.js';
import type { LogStyle } from './log-style.js';
import { clip, escaped, type Paint, paintFor } from './paint.js';

/** A record of the log as it is read again from its JSON. */
export interface ReadRecord {
  readonly time: string;
  readonly level: string;
  readonly event: string;
  readonly [field: string]: string | number | boolean | null | undefined;
}

/** At four bytes a character, a line stays below the 4096 bytes that a pipe takes whole. */
const maxColumns = 900;

/** What writes the log in this style to this output. */
export function logIn(style: LogStyle, output: LogDestination): LogDestination {
  return style === 'json' ? output : new TextLog(output, paintFor(style === 'coloured'));
}

/** Writes a log for people: a line for each record. Owns what the last readiness check has found: it is told once. */
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
    if (record.event === 'service_ready' || this.#isKnown(record)) return; // a banner tells of the first
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

/** One line. No field of the record can steer a terminal, or look like another line. */
export function renderRecord(record: ReadRecord, paint: Paint): string {
  const safe = escapedFields(record);
  return clip(`${paint.dim(timeOf(record.time))}  ${textOf(safe, paint)}`, maxColumns);
}

function textOf(record: ReadRecord, paint: Paint): string {
  if (record.event === 'http_request_completed') return requestLine(record, paint);
  const sentence: LogSentence | undefined = Object.hasOwn(logSentences, record.event)
    ? logSentences[record.event as keyof typeof logSentences]
    : undefined;
  const text = sentence === undefined ? listed(record) : sentence(record);
  if (record.level === 'error') return paint.red(text);
  return record.level === 'warn' ? paint.yellow(text) : text;
}

const ofEveryRecord = ['time', 'level', 'role', 'pid', 'event'];

/** An event without a sentence of its own: its name and its fields. */
function listed(record: ReadRecord): string {
  const fields = Object.entries(record).filter(([name, value]) => !ofEveryRecord.includes(name) && value !== null);
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

/** In the time zone of the machine. */
function timeOf(time: string): string {
  const at = new Date(time);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}
