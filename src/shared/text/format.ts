import { colourCodes } from './paint.js';

/** Formats a duration with at most two units, such as `3 h 12 min`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  const wholeSeconds = Math.round(seconds);
  if (wholeSeconds < 60) return `${wholeSeconds} s`;
  if (wholeSeconds < 3600) return twoUnits(Math.floor(wholeSeconds / 60), 'min', wholeSeconds % 60, 's');
  const minutes = Math.floor(wholeSeconds / 60);
  if (minutes < 24 * 60) return twoUnits(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  const hours = Math.floor(minutes / 60);
  return twoUnits(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function twoUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** Rounds fractions to three significant digits or fewer: 0.25, 3.1, 42, 1,234. */
export function formatNumber(value: number): string {
  const digits = value === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return new Intl.NumberFormat('en', { maximumFractionDigits: digits }).format(value);
}

/** Formats a number and its noun, such as `1 job` or `2 jobs`. */
export function formatCount(count: number, noun: string): string {
  return `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Pads all labels to the same width. */
export function labelledRows(
  rows: readonly (readonly [label: string, text: string])[],
  style = (label: string) => label,
): string[] {
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows.map(([label, text]) => `${style(label.padEnd(width))}  ${text}`);
}

/** Wraps a text into lines of at most this many columns, broken between words. A longer word gets a separate line. */
export function wrapped(text: string, columns: number): string[] {
  return wrappedWords(text.split(' '), columns);
}

/** Returns the number of visible columns: colour codes take no space. */
function columnsOf(text: string): number {
  return text.replace(colourCodes, '').length;
}

/** Wraps words that may contain spaces, like `wrapped`. */
export function wrappedWords(words: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || columnsOf(last) + 1 + columnsOf(word) > columns) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/**
 * Quotes text for a POSIX shell with single quotes. For a quote in the text, the quotes are closed, and reopened after
 * an escaped quote.
 */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns a word for a POSIX shell, quoted only if necessary. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./{}-]+$/.test(word) ? word : shellQuoted(word);
}

const dayMs = 86_400_000;

/** Formats a time limit, such as `30 days` or `5 min`. */
export function formatSpan(ms: number): string {
  const days = ms / dayMs;
  if (!Number.isInteger(days)) return formatDuration(ms);
  return days === 1 ? '1 day' : `${days} days`;
}

/** Returns the name of a login in one text, such as `claude@team`. */
export function loginLabel(cli: string, account: string | null | undefined): string {
  return account == null ? cli : `${cli}@${account}`;
}
