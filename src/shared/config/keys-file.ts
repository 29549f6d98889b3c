import { budgetPeriods } from '../days.js';
import { nearest } from '../text/nearest.js';
import { accountNamePattern } from './accounts-file.js';
import {
  type ApiKey,
  digestOf,
  digestsOf,
  type KeyOptions,
  type PeriodLimit,
  type PersonLine,
  plainOptions,
  type Rate,
  type Scope,
  type SharedBudget,
  scopes,
} from './api-keys.js';
import { groupName, personName } from './people.js';
import { modelNamePattern } from './values.js';
import { readCallbackPattern } from './webhooks.js';

/**
 * Keys, shared budgets and lines for people of a keys file in their order, and all faults of the file, each with the
 * number of its line.
 */
export interface KeysFileContent {
  readonly keys: readonly ApiKey[];
  readonly budgets: readonly SharedBudget[];
  readonly personLines: readonly PersonLine[];
  /** Faults, which never contain a digest or text that may be a key. */
  readonly faults: readonly string[];
}

/**
 * Parses keys, one per line: `name:sha256:<hex>`, then optionally a colon and options separated by commas. A line for
 * people begins with `sso:*`, `sso:group:<group>` or `sso:<person>` instead. A line that begins with `@` and the name of
 * a group, or with `@*`, is a shared budget. Blank lines and lines that begin with `#` are ignored. `otherKeys` are keys
 * from other sources: names and keys must be unique.
 */
export function readKeysFile(text: string, otherKeys: readonly ApiKey[] = []): KeysFileContent {
  const reading = keysFileReader(text, otherKeys);
  for (;;) {
    const { done, value } = reading.next();
    if (done) return value;
  }
}

/** Number of lines between two pauses. */
const sliceLines = 250;

/** Parses keys like `readKeysFile`, and awaits `pause` after each slice of lines. */
export async function readKeysFileInSlices(
  text: string,
  otherKeys: readonly ApiKey[],
  pause: () => Promise<void>,
): Promise<KeysFileContent> {
  const reading = keysFileReader(text, otherKeys);
  for (let lines = 1; ; lines++) {
    const { done, value } = reading.next();
    if (done) return value;
    if (lines % sliceLines === 0) await pause();
  }
}

/** Parses keys, and yields once for each line. */
function* keysFileReader(text: string, others: readonly ApiKey[]): Generator<void, KeysFileContent, void> {
  const keys: ApiKey[] = [];
  const budgets: SharedBudget[] = [];
  const personLines = new Map<string, PersonLine>();
  const faults: string[] = [];
  const taken = new TakenKeys(others);
  let number = 0;
  for (const line of text.replace(/^\uFEFF/, '').split('\n')) {
    number++;
    yield;
    if (/^\s*(#|$)/.test(line)) continue;
    try {
      if (line.startsWith('@')) {
        budgets.push(readSharedBudget(line.trimEnd(), budgets));
        continue;
      }
      if (isForPeople(line)) {
        const read = readPersonLine(line.trimEnd());
        if (personLines.has(read.name)) throw new Error(`another line already begins with sso:${read.name}`);
        personLines.set(read.name, read);
        continue;
      }
      const key = readKey(line.trimEnd());
      taken.addUnique(key);
      keys.push(key);
    } catch (error) {
      faults.push(`line ${number}: ${(error as Error).message}`);
    }
  }
  return { keys, budgets, personLines: [...personLines.values()], faults };
}

/** Owns the names and digests in use. */
class TakenKeys {
  readonly #names = new Set<string>();
  readonly #namesByDigest = new Map<string, string>();

  constructor(keys: readonly ApiKey[]) {
    for (const key of keys) this.#add(key);
  }

  /** Adds a key. Throws if another key has its name or its digest. */
  addUnique(key: ApiKey): void {
    const { name, digest } = key;
    if (this.#names.has(name)) throw new Error(`another key already has the name ${name}`);
    if (key.previous?.digest === digest) throw new Error(`${name} has the same key before and after its rotation`);
    const twins = digestsOf(key).flatMap((each) => this.#namesByDigest.get(each) ?? []);
    if (twins[0] !== undefined)
      throw new Error(`${name} has the same key as ${twins[0]}: each name needs a different key`);
    this.#add(key);
  }

  #add(key: ApiKey): void {
    this.#names.add(key.name);
    for (const digest of digestsOf(key)) this.#namesByDigest.set(digest, key.name);
  }
}

const digestPattern = /^[0-9a-f]{64}$/i;
const emptyDigest = digestOf('');
export const keyNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const nameForm = 'must be 1 to 64 letters, digits and . _ -';

function readKey(line: string): ApiKey {
  const [name = '', method, digest = '', ...rest] = line.split(':');
  if (method !== 'sha256') throw new Error('must begin with name:sha256:');
  if (!keyNamePattern.test(name)) throw new Error(`the name ${nameForm}`);
  if (!digestPattern.test(digest)) throw new Error('after sha256: there must be 64 hexadecimal digits');
  if (digest.toLowerCase() === emptyDigest) throw new Error('this is the digest of an empty key');
  // The name of a model may contain colons.
  const options = rest.length > 0 ? readOptions(rest.join(':')) : plainOptions;
  if (options.maxOwnKeys !== null) throw new Error('the option own_keys is only for people');
  return { name, digest: digest.toLowerCase(), ...options };
}

/** Whether a line is for people. A key may have the name `sso`. */
function isForPeople(line: string): boolean {
  return line.startsWith('sso:') && !line.startsWith('sso:sha256:');
}

function readPersonLine(line: string): PersonLine {
  const [, first = '', ...others] = line.split(':');
  const isGroup = first === 'group';
  const [name, rest] = isGroup ? [others[0] ?? '', others.slice(1)] : [first, others];
  if (isGroup && (!groupName.test(name) || /[,=]/.test(name)))
    throw new Error('after sso:group: there must be the name of a group in printable ASCII without : , and =');
  if (!isGroup && name !== '*' && !personName.test(name))
    throw new Error(
      'after sso: there must be *, group: and a group, or a person of 1 to 120 small letters, digits and . _ @ + -',
    );
  const options = rest.length > 0 ? readOptions(rest.join(':')) : plainOptions;
  if (options.hasSubclients || options.previous !== null)
    throw new Error('the options subclients and previous are only for keys');
  return { name: isGroup ? `group:${name}` : name, ...options };
}

/** Parses a line such as `@biology tokens=1000000/day,cost=200/month`. */
function readSharedBudget(line: string, others: readonly SharedBudget[]): SharedBudget {
  const [, name = '', options = ''] = /^@(\S*)\s*(.*)$/.exec(line) ?? [];
  if (!groupName.test(name) || name.includes(','))
    throw new Error('after @ there must be * or the name of a group, in printable ASCII without blanks and commas');
  if (others.some((other) => other.name === name)) throw new Error('another line already has this budget');
  const { tokens = null, costUsd = null, ...rest } = options === '' ? {} : optionsIn(options.split(/[\s,]+/));
  const isBudget = Object.keys(rest).length === 0 && (tokens !== null || costUsd !== null);
  if (!isBudget)
    throw new Error('after the name and a blank there must be tokens=, cost= or both, and no other option');
  return { name, tokens, costUsd };
}

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

function readOptions(text: string): KeyOptions {
  return { ...plainOptions, ...optionsIn(text.split(',')) };
}

function optionsIn(texts: readonly string[]): Partial<KeyOptions> {
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

/** Returns a fault for each cost budget. Applies if not every model CLI reports what a job costs. */
export function budgetFaults({ keys, budgets, personLines }: Omit<KeysFileContent, 'faults'>): string[] {
  const people = personLines.map((line) => [`the line sso:${line.name}`, line] as const);
  const named = [...keys.map((key) => [`the key ${key.name}`, key] as const), ...people, ...budgets.map(lineOf)];
  return named.flatMap(([name, { costUsd }]) =>
    costUsd === null ? [] : [`${name} has the option cost, but not each model CLI reports what a job costs`],
  );
}

function lineOf(budget: SharedBudget): [name: string, budget: SharedBudget] {
  return [`the line @${budget.name}`, budget];
}

function readWebhooks(text: string): string {
  const start = readCallbackPattern(text);
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
