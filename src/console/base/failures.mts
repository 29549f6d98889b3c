import type { ErrorBody } from '../../shared/api/error.js';
import { countText, hourText, timeText } from './format.mjs';
import { codeTable, reasonTable } from './tables.mjs';

/** Error that the server reports, as a response or as an event of a stream. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  /** Error body of the service; null if another server responded, such as a proxy. */
  readonly body: ErrorBody | null;

  constructor(status: number, body: ErrorBody | null) {
    super(body?.message ?? `something between here and the service has answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

/** Failure to reach the server, or a connection that broke during a response. */
export class ServerGone extends Error {
  override readonly name = 'ServerGone';

  constructor() {
    super('connection lost');
  }
}

export function isAbort(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'AbortError';
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

const errorCodeOf = (error: Error) => (error instanceof ApiError ? error.body?.error : undefined);

/** Returns the title of an error. `hasText`: a part of the answer is shown above it. */
export function titleOf(error: Error, hasText = false): string {
  if (error instanceof ServerGone) return 'The service does not answer';
  const code = errorCodeOf(error);
  if (isOwnLimit(error)) return 'Limit reached';
  if (code === 'cli_error' && hasText) return 'The answer was cut off';
  return (code && codeTable[code]?.title) ?? 'Failed';
}

/** Whether a limit of this client refuses the request: a budget, or the limit of its waiting jobs. */
function isOwnLimit(error: Error): boolean {
  return isBudget(error) || error.message.startsWith('this client may not wait: ');
}

/** Whether a budget is used up, which only its next period or the operator changes. */
export function isBudget(error: Error): boolean {
  return error instanceof ApiError && error.body?.reason === 'budget';
}

const dayMs = 86_400_000;

/** Formats a time with its preposition: `at 01:00` if it is today or within a day, else `on 1 Dec 2026, 01:00`. */
function timePhrase(time: string, now: number): string {
  const ms = Date.parse(time);
  const isNear = (ms > now && ms - now < dayMs) || new Date(ms).toDateString() === new Date(now).toDateString();
  return isNear ? `at ${hourText(ms)}` : `on ${timeText(ms)}`;
}

/** Phrases of the service, and the words of the console for them. */
const wordings: readonly (readonly [RegExp, string])[] = [
  [/\bthe (daily|weekly|monthly) budget of (?:the API key|this person)\b/, 'your $1 budget'],
  [/; it resets\b/, '. It resets'],
  [/^this client may not wait: it has (.*?), and its limit is\b/, 'you have $1, and your limit is'],
  [/^this client may not wait: it has\b/, 'you have'],
  [/^this client may not wait: its key has\b/, 'your key has'],
  [/^the client has used its (\d+ web searches of this day)\b/, 'you have used your $1'],
  [/^rate limit of this API key reached\b/, 'the rate limit of your key is reached'],
  [/^the API key expired\b/, 'your key expired'],
  [/^the access of \S+ expired\b/, 'your access expired'],
];

/**
 * Returns the message as a sentence for its reader: with a capital letter, a full stop, times in the time zone of the
 * reader, and separators in large counts of tokens.
 */
export function sentenceOf({ message }: Pick<Error, 'message'>, now: number): string {
  const words = wordings
    .reduce((text, [phrase, wording]) => text.replace(phrase, wording), message)
    .replace(/\bat (\d{4}-\d\d-\d\dT[\d:.]+Z)/g, (_, time: string) => timePhrase(time, now))
    .replace(/\b\d{4,}(?= of | tokens\b)/g, (count) => countText(Number(count)));
  const sentence = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?…]$/.test(sentence) ? sentence : `${sentence}.`;
}

/** Removes the names of variables and of options of keys, which only an operator can set. */
export function withoutVariables(sentence: string): string {
  return sentence
    .replace(/ \((?:[^()]*MODEL_API_[^()]*|the option [^()]*)\)/g, '')
    .replace(/ with the option [^\s.]+/g, ' that allows it')
    .replace(/[:;,] [^:;,]*MODEL_API_[^:;]*?(?=[.;]?$|[:;])/g, '')
    .replace(/MODEL_API_\w+/g, 'a setting of the service');
}

/** Whether the same request may succeed when it is sent again. */
export function mayPass(error: Error): boolean {
  if (error instanceof ServerGone) return true;
  if (!(error instanceof ApiError)) return false;
  if (error.body === null) return true;
  const { error: code, reason } = error.body;
  return (reason && reasonTable[reason]?.mayPass) ?? codeTable[code]?.mayPass ?? false;
}
