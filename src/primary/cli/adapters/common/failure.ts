import { z } from 'zod';
import type { CliReason, QuotaRefusal } from '../../../../shared/errors.js';
import type { Turn, TurnFailed } from '../../contract/adapter.js';
import { jsonOf } from './lines.js';

/**
 * A code in one field of a report, and what it means. `account`: it refuses the account, and no request alone brings that
 * about.
 */
export type CodeRow = readonly [field: string, code: string | number, reason: CliReason, refuses?: 'account'];

/** A form of words, and what it means. */
export type WordRow = readonly [sign: RegExp, reason: CliReason];

/** How one program reports that it has failed. Of words the first row that fits counts. */
export interface FailureTable {
  readonly codes: readonly CodeRow[];
  /** The last resort, for what has no code. */
  readonly words: readonly WordRow[];
}

/** The HTTP status of a model's API, for programs that report it. */
const statuses: readonly CodeRow[] = [
  ['status', 401, 'auth', 'account'],
  ['status', 402, 'quota'],
  ['status', 403, 'auth'],
  ['status', 404, 'model_unknown'],
  ['status', 413, 'prompt_too_long'],
  ['status', 429, 'quota'],
  ['status', 503, 'overloaded'],
  ['status', 529, 'overloaded'],
];

/** The statuses of an API that finds fault with the request, where neither a code nor words say which. */
const requestStatuses: ReadonlySet<unknown> = new Set([400, 422]);

export function isKnownStatus(status: number): boolean {
  return statuses.some(([, known]) => known === status) || requestStatuses.has(status);
}

export function refusesRequest({ codes }: Pick<FailureReport, 'codes'>): boolean {
  return codes.some(([field, code]) => field === 'status' && requestStatuses.has(code));
}

export interface FailureReport {
  /** The most certain first. `status` is that of HTTP. */
  readonly codes: readonly (readonly [field: string, code: string | number | null | undefined])[];
  /** For the client. */
  readonly words: string;
  /** More words, which only the table reads. */
  readonly hidden?: string | undefined;
  /** The turn; null where the program has received nothing of a client. */
  readonly asked: Turn | null;
  /** The reason where no code gives one, whatever the words say. */
  readonly uncoded?: CliReason | undefined;
  /** What refuses the account may come from what the request names. */
  readonly isOfRequest: boolean;
  /** What is used up, where a code says that something is. */
  readonly quota: QuotaRefusal;
}

export const quotaOfModel: QuotaRefusal = { scope: 'model', resetsAt: null };

/** How a turn fails. Only a code speaks of the account: words never hold back the jobs of others. */
export function failedTurn(table: FailureTable, report: FailureReport): TurnFailed {
  const { words, hidden = words, asked, uncoded, isOfRequest, quota } = report;
  const [, , coded, refuses] = rowOf(table, report) ?? [];
  const otherwise = refusesRequest(report) ? 'request_refused' : 'other';
  const reason = coded ?? uncoded ?? reasonInWords(hidden, table.words, asked) ?? otherwise;
  const start = reason === 'request_refused' ? "the model's API refuses the request" : 'the model CLI reports';
  const failed = turnFailed(reason, sentence(start, words));
  if (coded === 'quota') return { ...failed, quota };
  return refuses === 'account' && !isOfRequest ? { ...failed, scope: 'account' } : failed;
}

function rowOf(table: FailureTable, { codes }: FailureReport): CodeRow | undefined {
  const rows = [...table.codes, ...statuses];
  for (const [field, code] of codes) {
    const row = rows.find(([of, known]) => of === field && known === code);
    if (row !== undefined) return row;
  }
  return undefined;
}

export function turnFailed(reason: CliReason, message: string): TurnFailed {
  return { type: 'turn-failed', reason, message };
}

const maxSaid = 300;
/** Longer words are cut before addresses and folders are looked for, because a search takes the square of their length. */
const maxSearched = 2000;

/** With the first line of the words, as far as a client can be shown it. */
export function sentence(start: string, words: string): string {
  const [firstLine = ''] = words.trim().split('\n');
  const said = withoutFolders(withoutAddresses(printable(firstLine.slice(0, maxSearched)))).slice(0, maxSaid);
  return said === '' ? start : `${start}: ${said}`;
}

const publicHosts =
  '(?:[\\w-]+\\.)*(?:anthropic\\.com|claude\\.(?:ai|com)|openai\\.com|google\\.(?:com|dev)|googleapis\\.com)';
/** A URL, unless it is one of a vendor; an IP address; a host with a port. */
const addresses = [
  new RegExp(`\\b(?:https?|wss?)://(?!${publicHosts}(?![\\w.-]*\\w))[^\\s"'<>()[\\]]+`, 'gi'),
  /\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g,
  /\b(?:localhost|[a-z\d-]+(?:\.[a-z\d-]+)+):\d{2,5}\b/gi,
];

/** Where the API of the operator is, is the operator's business. */
function withoutAddresses(words: string): string {
  return addresses.reduce((left, address) => left.replace(address, '(address)'), words);
}

/** Where a file is on the host is no matter of a client. Paths of an API, such as /v1/messages, stay. */
function withoutFolders(words: string): string {
  return words.replace(/(?<![\w.:/~-])\/(?!v\d|api\/)(?:[^\s/'"`:,;()<>]+\/)+([^\s/'"`:,;()<>]+)/g, '…/$1');
}

export function printable(words: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  return words.replace(/[\x00-\x1f\x7f-\x9f]/g, '');
}

const apiError = z.object({ error: z.object({ message: z.string() }) });

/** The API's own words, where a program passes on its whole answer. */
export function wordsOfApi(words: string): string {
  return apiError.safeParse(jsonOf(words)).data?.error.message ?? words;
}

/** For these the service starts no further jobs, so no client may bring them about with its own words. */
const heldFor: ReadonlySet<CliReason> = new Set(['auth', 'quota']);

/** UTF-16 units of an error that are read. */
const maxWords = 10_000;
/** UTF-16 units of a request that are compared. Of a longer one, anything may stand in the error. */
const maxOwn = 512 * 1024;
/** Strings of the request that are cut out of an error whole. A shorter one is part of many words. */
const minCut = 3;
const maxCut = 1000;
const maxCuts = 32;
/** No sign reaches across this by accident: they allow one character between two words. */
const gap = ' … ';

/**
 * The reason that the words of an error give, without the strings of the request `asked`: an error often repeats the
 * name of the model, or a part of the prompt. `asked` is null where the program has received nothing of a client.
 */
function reasonInWords(words: string, rows: readonly WordRow[], asked: Turn | null): CliReason | undefined {
  const own = asked === null ? [] : stringsOf(asked);
  const left = cutOut(words.slice(0, maxWords), own);
  const isOwn = ownPhrases(own);
  const fits = ([sign, reason]: WordRow) => {
    const phrases = left.match(new RegExp(sign, `${sign.flags}g`)) ?? [];
    return phrases.some((phrase) => !heldFor.has(reason) || !isOwn(phrase));
  };
  return rows.find(fits)?.[1];
}

/** Those that an error repeats most likely come first. */
function stringsOf({ model, system, schema, text, history, heard = [] }: Turn): readonly string[] {
  const parts = [model, text, system, schema].filter((part) => part !== null);
  return [...parts, ...[...heard, ...history].reverse().map((message) => message.text)];
}

/** The whole strings, such as the name of the model, in whatever case they are repeated. */
function cutOut(words: string, own: readonly string[]): string {
  const trimmed = own.slice(0, maxCuts).map((text) => text.trim());
  const cut = trimmed.filter(({ length }) => length >= minCut && length <= maxCut);
  const longestFirst = cut.sort((a, b) => b.length - a.length);
  return longestFirst.reduce((left, text) => left.replace(new RegExp(escaped(text), 'giu'), gap), words);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

/** Whether a phrase stands in the request, however it is spelled there: `API_KEY` is `api key`. */
function ownPhrases(own: readonly string[]): (phrase: string) => boolean {
  const length = own.reduce((sum, text) => sum + text.length, 0);
  let lettersOfAll: string | null = null;
  return (phrase) => {
    if (length > maxOwn) return true;
    lettersOfAll ??= own.map(lettersOf).join('\n');
    return lettersOfAll.includes(lettersOf(phrase));
  };
}

/** Without case, blanks and punctuation. */
function lettersOf(text: string): string {
  const folded = text.normalize('NFKC').toUpperCase().toLowerCase();
  return folded.replace(/[^\p{L}\p{N}]+/gu, '');
}
