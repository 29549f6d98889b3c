import { z } from 'zod';
import type { CliReason, QuotaRefusal } from '../../../../shared/errors.js';
import type { Turn, TurnFailed } from '../../contract/adapter.js';
import { type AwaitedStep, openingLimitMs } from '../../contract/awaited-step.js';
import { jsonOf } from './lines.js';

/**
 * Error code in one field of a report, and its reason. `account`: the code refuses the account, which no request alone
 * can cause.
 */
type CodeRow = readonly [field: string, code: string | number, reason: CliReason, refuses?: 'account'];

/** Pattern of an error text, and its reason. */
type WordRow = readonly [sign: RegExp, reason: CliReason];

/** Error codes and texts of one program. In `words`, the first matching row counts. */
export interface FailureTable {
  readonly codes: readonly CodeRow[];
  /** Patterns for errors without a code, tried last. */
  readonly words: readonly WordRow[];
}

/** HTTP statuses of a model's API, for programs that report them. */
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

/** HTTP statuses with which an API rejects a request, if neither a code nor words give a reason. */
const requestStatuses: ReadonlySet<unknown> = new Set([400, 422]);

export function isKnownStatus(status: number): boolean {
  return statuses.some(([, known]) => known === status) || requestStatuses.has(status);
}

export function refusesRequest({ codes }: Pick<FailureReport, 'codes'>): boolean {
  return codes.some(([field, code]) => field === 'status' && requestStatuses.has(code));
}

export interface FailureReport {
  /** Codes, the most reliable first. The field `status` is an HTTP status. */
  readonly codes: readonly (readonly [field: string, code: string | number | null | undefined])[];
  /** Error text for the client. */
  readonly words: string;
  /** Longer error text, which is only matched with the patterns; `words` if absent. */
  readonly hidden?: string | undefined;
  /** Turn that failed; null if the program has received no data of a client. */
  readonly turn: Turn | null;
  /** Reason if no code gives one, regardless of the words. */
  readonly uncoded?: CliReason | undefined;
  /** Whether a refusal of the account may be caused by a name in the request. */
  readonly isOfRequest: boolean;
  /** Exhausted quota, for reports with a quota code. */
  readonly quota: QuotaRefusal;
}

export const quotaOfModel: QuotaRefusal = { scope: 'model', resetsAt: null };

/** Returns the failure of a turn. Only a code can blame the account: words never block the jobs of other clients. */
export function failedTurn(table: FailureTable, report: FailureReport): TurnFailed {
  const { words, hidden = words, turn, uncoded, isOfRequest, quota } = report;
  const [, , coded, refuses] = rowOf(table, report) ?? [];
  const otherwise = refusesRequest(report) ? 'request_refused' : 'other';
  const reason = coded ?? uncoded ?? reasonInWords(hidden, table.words, turn) ?? otherwise;
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

/** Returns a step that a program must finish before its model works. */
export function opening(name: string): AwaitedStep<TurnFailed> {
  const seconds = openingLimitMs / 1000;
  const late = turnFailed('other', `the model CLI was silent for ${seconds} seconds in the step ${name}`);
  return { name, limitMs: openingLimitMs, late };
}

const maxSaid = 300;
/**
 * Length to which an error text is cut before the search for addresses and folders, whose time is quadratic in the
 * length.
 */
const maxSearched = 2000;

/** Returns a sentence with the first line of the words, without addresses, folders and control characters. */
export function sentence(start: string, words: string): string {
  const [firstLine = ''] = words.trim().split('\n');
  const message = withoutFolders(withoutAddresses(printable(firstLine.slice(0, maxSearched)))).slice(0, maxSaid);
  return message === '' ? start : `${start}: ${message}`;
}

const publicHosts =
  '(?:[\\w-]+\\.)*(?:anthropic\\.com|claude\\.(?:ai|com)|openai\\.com|google\\.(?:com|dev)|googleapis\\.com)';
/** Patterns of addresses: a URL except a vendor's, an IP address, a host with a port. */
const addresses = [
  new RegExp(`\\b(?:https?|wss?)://(?!${publicHosts}(?![\\w.-]*\\w))[^\\s"'<>()[\\]]+`, 'gi'),
  /\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g,
  /\b(?:localhost|[a-z\d-]+(?:\.[a-z\d-]+)+):\d{2,5}\b/gi,
];

/** Hides addresses, because the API's address is only the operator's business. */
function withoutAddresses(words: string): string {
  return addresses.reduce((left, address) => left.replace(address, '(address)'), words);
}

/** Hides the folders of host paths from clients. API paths such as /v1/messages stay. */
function withoutFolders(words: string): string {
  return words.replace(/(?<![\w.:/~-])\/(?!v\d|api\/)(?:[^\s/'"`:,;()<>]+\/)+([^\s/'"`:,;()<>]+)/g, '…/$1');
}

export function printable(words: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  return words.replace(/[\x00-\x1f\x7f-\x9f]/g, '');
}

const apiError = z.object({ error: z.object({ message: z.string() }) });

/** Returns the API's error message if the words are its whole JSON answer; else the words. */
export function wordsOfApi(words: string): string {
  return apiError.safeParse(jsonOf(words)).data?.error.message ?? words;
}

/** Reasons that block further jobs of the service. No client may cause one with the text of its request. */
const heldFor: ReadonlySet<CliReason> = new Set(['auth', 'quota']);

/** UTF-16 units of an error text that are read. */
const maxWords = 10_000;
/**
 * UTF-16 units of the longest request in which phrases of an error text are searched. Every phrase in the error of a
 * longer request counts as a text of its client.
 */
const maxOwn = 512 * 1024;
/** Shortest length of request strings that are cut out of an error text. Shorter ones occur within many words. */
const minCut = 3;
const maxCut = 1000;
const maxCuts = 32;
/**
 * Replacement of a removed string. No pattern matches across it, because patterns allow one character between two
 * words.
 */
const gap = ' … ';

/**
 * Returns the reason that an error text gives. Strings of the request are removed first, because errors often repeat
 * the name of the model or a part of the prompt. `turn` is null if the program has received no data of a client.
 */
function reasonInWords(words: string, rows: readonly WordRow[], turn: Turn | null): CliReason | undefined {
  const requestTexts = turn === null ? [] : stringsOf(turn);
  const left = cutOut(words.slice(0, maxWords), requestTexts);
  const isOwn = ownPhrases(requestTexts);
  const fits = ([sign, reason]: WordRow) => {
    const phrases = left.match(new RegExp(sign, `${sign.flags}g`)) ?? [];
    return phrases.some((phrase) => !heldFor.has(reason) || !isOwn(phrase));
  };
  return rows.find(fits)?.[1];
}

/** Returns the strings of a request, the ones that an error most likely repeats first. */
function stringsOf({ model, system, schema, text, history, heard = [] }: Turn): readonly string[] {
  const parts = [model, text, system, schema].filter((part) => part !== null);
  return [...parts, ...[...heard, ...history].reverse().map((message) => message.text)];
}

/** Removes whole strings of the request, such as the name of the model, regardless of case. */
function cutOut(words: string, requestTexts: readonly string[]): string {
  const trimmed = requestTexts.slice(0, maxCuts).map((text) => text.trim());
  const cut = trimmed.filter(({ length }) => length >= minCut && length <= maxCut);
  const longestFirst = cut.sort((a, b) => b.length - a.length);
  return longestFirst.reduce((left, text) => left.replace(new RegExp(escaped(text), 'giu'), gap), words);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

/** Returns a test whether a phrase occurs in the request in any spelling: `API_KEY` matches `api key`. */
function ownPhrases(requestTexts: readonly string[]): (phrase: string) => boolean {
  const length = requestTexts.reduce((sum, text) => sum + text.length, 0);
  let lettersOfAll: string | null = null;
  return (phrase) => {
    if (length > maxOwn) return true;
    lettersOfAll ??= requestTexts.map(lettersOf).join('\n');
    return lettersOfAll.includes(lettersOf(phrase));
  };
}

/** Returns the text without case, blanks and punctuation. */
function lettersOf(text: string): string {
  const folded = text.normalize('NFKC').toUpperCase().toLowerCase();
  return folded.replace(/[^\p{L}\p{N}]+/gu, '');
}
