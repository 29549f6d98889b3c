import { budgetPeriods } from '../days.js';
import { nearest } from '../text/nearest.js';
import { accountNamePattern } from './accounts-file.js';
import { type KeyOptions, type PeriodLimit, plainOptions, type Rate, type Scope, scopes } from './api-keys.js';
import { readUrlPattern } from './urls.js';
import { modelNamePattern } from './values.js';

export const digestPattern = /^[0-9a-f]{64}$/i;
export const keyNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const nameForm = 'must be 1 to 64 letters, digits and . _ -';

/** Parsers of the options. Each throws an error whose message does not repeat the value. */
const optionReaders: Readonly<Record<string, (value: string | null) => Partial<KeyOptions>>> = {
  scopes: (value) => ({ scopes: readScopes(value ?? '') }),
  rate: (value) => ({ rate: readRate(value ?? '') }),
  concurrent: (value) => ({ maxConcurrent: readCount(value ?? '', 1, 1024) }),
  queue: (value) => ({ maxQueued: readCount(value ?? '', 0, 1_000_000) }),
  weight: (value) => ({ weight: readCount(value ?? '', 1, 100) }),
  models: (value) => ({ models: readModels(value ?? '') }),
  accounts: (value) => ({ accounts: readAccounts(value ?? '') }),
  fallback: (value) => {
    if (value !== 'off') throw new Error('must be off');
    return { mayFallBack: false };
  },
  search: (value) => ({ searchesPerDay: value === 'on' ? usualSearches : readSearches(value ?? '') }),
  tokens: (value) => ({ tokens: readTokens(value ?? '') }),
  cost: (value) => ({ costUsd: readCost(value ?? '') }),
  group: (value) => ({ group: readGroup(value ?? '') }),
  webhooks: (value) => ({ webhooks: readWebhooks(value ?? '') }),
  subclients: (value) => {
    if (value !== null) throw new Error('takes no value');
    return { hasSubclients: true };
  },
  expires: (value) => ({ expiresAt: readDay(value ?? '') }),
  own_keys: (value) => ({ maxOwnKeys: readCount(value ?? '', 1, 100) }),
  previous: (value) => ({ previous: readPrevious(value ?? '') }),
};

export const optionNames = Object.keys(optionReaders);

/** Parses the options of a line, separated by commas. */
export function readOptions(text: string): KeyOptions {
  return { ...plainOptions, ...optionsIn(text.split(',')) };
}

/** Parses options. The result has only the given ones. */
export function optionsIn(texts: readonly string[]): Partial<KeyOptions> {
  const read = texts.map(readOption);
  const twice = read.find(([name], index) => read.findIndex(([other]) => other === name) < index);
  if (twice !== undefined) throw new Error(`the option ${twice[0]} is given twice`);
  return Object.assign({}, ...read.map(([, option]) => option)) as Partial<KeyOptions>;
}

function readOption(text: string): [name: string, option: Partial<KeyOptions>] {
  const [, name = '', value = null] = /^([^=]*)(?:=(.*))?$/.exec(text) ?? [];
  if (!Object.hasOwn(optionReaders, name)) throw new Error(unknownOption(name));
  try {
    return [name, optionReaders[name]?.(value) ?? {}];
  } catch (error) {
    throw new Error(`the option ${name} ${(error as Error).message}`);
  }
}

/** Texts of options by name; true for an option without a value. */
export type OptionTexts = Readonly<Record<string, string | true>>;

/** Option whose text is wrong. The message does not repeat the text. */
export class OptionFault extends Error {
  override readonly name = 'OptionFault';
  readonly option: string;

  constructor(option: string, message: string) {
    super(message);
    this.option = option;
  }
}

/** Parses options that are named one by one. Throws an OptionFault. */
export function readOptionTexts(texts: OptionTexts): Partial<KeyOptions> {
  const read = Object.entries(texts).map(([name, text]) => {
    if (!Object.hasOwn(optionReaders, name)) throw new OptionFault(name, 'is no option of a key');
    try {
      return optionReaders[name]?.(text === true ? null : text) ?? {};
    } catch (error) {
      throw new OptionFault(name, (error as Error).message);
    }
  });
  return Object.assign({}, ...read) as Partial<KeyOptions>;
}

/** Returns the texts of all options that are set, without the digest of an old key unless `withDigest`. */
export function optionTexts(options: KeyOptions, withDigest = false): OptionTexts {
  const { rate, tokens, costUsd, models, expiresAt, previous } = options;
  const texts: Record<string, string | true | null | undefined> = {
    scopes: options.scopes.join('+'),
    rate: rate && `${rate.maxRequests}/${rate.windowMs / 1000}`,
    concurrent: options.maxConcurrent?.toString(),
    queue: options.maxQueued?.toString(),
    weight: options.weight?.toString(),
    models: models?.join('+'),
    accounts: options.accounts?.join('+'),
    fallback: options.mayFallBack ? null : 'off',
    search: searchText(options),
    tokens: tokens && `${tokens.max}/${tokens.period}`,
    cost: costUsd && `${costUsd.max}/${costUsd.period}`,
    group: options.group,
    webhooks: options.webhooks && `${options.webhooks}*`,
    subclients: options.hasSubclients || null,
    expires: expiresAt === null ? null : dayText(expiresAt),
    own_keys: options.maxOwnKeys?.toString(),
    previous: previous && `${withDigest ? previous.digest : '…'}/${dayText(previous.expiresAt)}`,
  };
  const isSet = (entry: [string, unknown]): entry is [string, string | true] => (entry[1] ?? null) !== null;
  return Object.fromEntries(Object.entries(texts).filter(isSet));
}

/** Returns a day in UTC. */
export function dayText(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/**
 * Describes an unknown option. Shows the name only if it is too short to be a key, or similar to the name of an option.
 */
function unknownOption(name: string): string {
  const close = nearest(name.toLowerCase(), optionNames);
  const isShown = close !== null || /^[A-Za-z_-]{1,15}$/.test(name);
  const shown = isShown ? `: ${name}${close === null ? '' : ` (did you mean ${close}?)`}` : '';
  return `an option is none of ${optionNames.join(', ')}${shown}`;
}

function readScopes(text: string): Scope[] {
  const named = text.split('+');
  if (!named.every(isScope)) throw new Error(`must be one or more of ${scopes.join(', ')}, joined by +`);
  return scopes.filter((scope) => named.includes(scope));
}

function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}

function readRate(text: string): Rate {
  const [, requests = '', seconds = ''] = /^(\d{1,9})\/(\d{1,5})$/.exec(text) ?? [];
  const rate = { maxRequests: Number(requests), windowMs: Number(seconds) * 1000 };
  if (rate.maxRequests > 0 && rate.windowMs > 0 && rate.windowMs <= 86_400_000) return rate;
  throw new Error('must be requests/seconds, such as 60/60, and at most a day');
}

function readCount(text: string, min: number, max: number): number {
  const count = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= min && count <= max) return count;
  throw new Error(`must be a whole number from ${min} to ${max}`);
}

/** Web searches in a day with the option `search=on`. */
const usualSearches = 100;

function readSearches(text: string): number {
  const [, count = ''] = /^(\d{1,6})\/day$/.exec(text) ?? [];
  if (Number(count) > 0) return Number(count);
  throw new Error('must be on, or a number of searches a day, such as 20/day');
}

/** Returns the text of the option `search`; null if the client may not search. */
export function searchText({ searchesPerDay }: Pick<KeyOptions, 'searchesPerDay'>): string | null {
  if (searchesPerDay === null) return null;
  return searchesPerDay === usualSearches ? 'on' : `${searchesPerDay}/day`;
}

function readTokens(text: string): PeriodLimit {
  const limit = readLimit(text, /^\d{1,15}$/);
  if (limit !== null) return limit;
  throw new Error('must be tokens/day, tokens/week or tokens/month, such as 1000000/day');
}

function readCost(text: string): PeriodLimit {
  const limit = readLimit(text, /^\d{1,7}(?:\.\d{1,4})?$/);
  if (limit !== null) return limit;
  throw new Error('must be US dollars/day, dollars/week or dollars/month, such as 5/day or 0.5/month');
}

/** Parses an amount and a period, such as `5/day`; null if the text is wrong or the amount is 0. */
function readLimit(text: string, amountForm: RegExp): PeriodLimit | null {
  const [amount = '', named, ...rest] = text.split('/');
  const period = budgetPeriods.find((each) => each === named);
  const isRight = period !== undefined && rest.length === 0 && amountForm.test(amount) && Number(amount) > 0;
  return isRight ? { max: Number(amount), period } : null;
}

function readWebhooks(text: string): string {
  const start = readUrlPattern(text);
  if (start !== null) return start;
  throw new Error(
    'must be an https:// or http:// URL without a user that ends with *, such as https://example.org/hooks/*',
  );
}

function readGroup(text: string): string {
  if (keyNamePattern.test(text)) return text;
  throw new Error(nameForm);
}

function readModels(text: string): string[] {
  const models = text.split('+');
  if (models.every((model) => modelNamePattern.test(model))) return models;
  throw new Error('must be names of models, joined by +');
}

function readAccounts(text: string): string[] {
  const accounts = text.split('+');
  if (accounts.every((account) => accountNamePattern.test(account))) return accounts;
  throw new Error('must be names of accounts, joined by +');
}

/** Returns the start of a day in UTC, in milliseconds since the epoch. */
function readDay(text: string): number {
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));
  if (isDay && new Date(text).toISOString().startsWith(text)) return Date.parse(text);
  throw new Error('must be a day such as 2027-01-31');
}

function readPrevious(text: string): { readonly digest: string; readonly expiresAt: number } {
  const [digest = '', day = ''] = text.split('/', 2);
  if (digestPattern.test(digest)) return { digest: digest.toLowerCase(), expiresAt: readDay(day) };
  throw new Error('must be the 64 hexadecimal digits of the old key, / and a day');
}
