import { isAbsolute, normalize } from 'node:path';
import type { Account } from '../../primary/cli/model-cli.js';
import { type ClientText, clientText, ssoClient } from '../../shared/client.js';
import { shellWords } from '../../shared/config/clis.js';
import { personName } from '../../shared/config/people.js';
import { accountNamePattern } from '../../shared/config/values.js';
import { nearest } from '../../shared/text/nearest.js';

/** Account of a model CLI, as a line of the accounts file describes it. */
export interface AccountLine extends Account {
  readonly name: string;
  /** Name of its model CLI, or the kind of that CLI. */
  readonly cli: string;
  /** Absolute path of the HOME with the login; null if a file has the token. */
  readonly home: string | null;
  /** Absolute path of the file with the token; null if the login is in a HOME. */
  readonly tokenFile: string | null;
  /** Number of the line in the file. */
  readonly line: number;
}

/** Account whose line has a fault. It serves nobody, and no other account replaces it. */
export interface ClosedAccount extends Pick<AccountLine, 'name' | 'owners' | 'line'> {
  /** Name or kind of its model CLI; null if the line has none. */
  readonly cli: string | null;
  /** HOMEs that the line names, also with a mistyped option. */
  readonly homes: readonly string[];
}

/** Accounts in the order of the file, and all faults of the file, each with the number of its line. */
export interface AccountsFileContent {
  readonly accounts: readonly AccountLine[];
  readonly closed: readonly ClosedAccount[];
  /** Whether the line break at the end is missing, as in a half-written file. */
  readonly isCutOff: boolean;
  readonly faults: readonly string[];
}

/** Limit of accounts, because each has its own processes, checks and metrics. */
const maxAccounts = 100;
/** Largest accounts file, and largest file with a token. */
export const maxAccountsFileBytes = 256 * 1024;
const tooMany = `the file must have at most ${maxAccounts} accounts`;
const maxRunningJobs = 1024;
export const accountNameForm = 'the name must be 1 to 32 letters, digits and . _ -';
const ownerPattern = /^(key|made|user):([A-Za-z0-9_][\w.@/~-]{0,128})$/;

/**
 * Parses accounts, one per line: a name, a model CLI, and options such as `home=/srv/ada owners=key:ada jobs=2`, with
 * quotes as in a shell. Blank lines and lines that begin with `#` are ignored. The last line needs a line break: the line
 * of a half-written file could lack its owners, and its account would serve everybody.
 */
export function readAccountsFile(text: string): AccountsFileContent {
  const accounts: AccountLine[] = [];
  const closed: ClosedAccount[] = [];
  const faults: string[] = [];
  let hasTooMany = false;
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  for (const [index, line] of lines.entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    try {
      if (accounts.length >= maxAccounts) throw new Error(tooMany);
      const account = readAccount(line.trim(), index + 1);
      if (index === lines.length - 1)
        throw new Error('the line break at its end is missing, as in a half-written file');
      checkUnique(account, accounts);
      accounts.push(account);
    } catch (error) {
      const { message } = error as Error;
      if (message !== tooMany || !hasTooMany) faults.push(`line ${index + 1}: ${message}`);
      hasTooMany ||= message === tooMany;
      closed.push(closedAccountIn(line, index + 1));
    }
  }
  return { accounts, closed, isCutOff: !/^\s*(#|$)/.test(lines.at(-1) ?? ''), faults };
}

/**
 * Finds what can be read of a line with a fault. A word in place of an owner may be the name of one, of any kind. A line
 * without a sign of owners is for everybody.
 */
function closedAccountIn(line: string, number: number): ClosedAccount {
  const [name = '', cli = '', ...options] = line.trim().split(/\s+/);
  const isSign = (option: string) => /owner|:/i.test(option);
  const texts = options.some(isSign) ? options.filter((option) => isSign(option) || !option.includes('=')) : [];
  const words = texts.flatMap((text) => text.replace(/^[^=]*=/, '').split(/\+(?=\w+:|$)|["',;]/));
  const owners = words.flatMap(ownersNamed);
  return { name, cli: /^[\w-]+$/.test(cli) ? cli : null, owners, homes: homesIn(line), line: number };
}

/** Returns the HOMEs in a line with a fault. Other paths in it may be programs, which accounts need. */
function homesIn(line: string): string[] {
  return [...line.matchAll(/([\w-]+)=(?:"([^"]*)"?|'([^']*)'?|([^\s"']*))/g)].flatMap(([, option = '', ...values]) => {
    const value = values.find((each) => each !== undefined) ?? '';
    const isHome = nearest(option.toLowerCase(), optionNames) === 'home';
    return isHome && isAbsolute(value) && !value.includes('\0') ? [readPath(value)] : [];
  });
}

/** Returns the owners that a word may name. The name of a person may contain a plus. */
function ownersNamed(word: string): ClientText[] {
  const owners = ownersIn(word);
  if (owners.length > 0) return owners;
  const names = word.split(/[^\w.@/~+-]+/).flatMap((text) => {
    const parts = text.split('+');
    return parts.flatMap((_, from) => [1, 2, 3].map((count) => parts.slice(from, from + count).join('+')));
  });
  return [...new Set(names)].flatMap((name) =>
    [`key:${name}`, `made:${name}`, `user:${name}`, `sso:${name.toLowerCase()}`].flatMap(ownersIn),
  );
}

/** Returns the owner in an array; an empty array if the text is none. */
function ownersIn(text: string): ClientText[] {
  try {
    return [readOwner(text)];
  } catch {
    return [];
  }
}

type AccountOptions = Pick<AccountLine, 'home' | 'tokenFile' | 'owners' | 'maxRunning' | 'isSpare'>;

const optionReaders: Readonly<Record<string, (value: string) => Partial<AccountOptions>>> = {
  home: (value) => ({ home: readPath(value) }),
  'token-file': (value) => ({ tokenFile: readPath(value) }),
  owners: (value) => ({ owners: value.split(/\+(?=\w+:|$)/).map(readOwner) }),
  jobs: (value) => ({ maxRunning: readJobs(value) }),
  spare: (value) => ({ isSpare: readOn(value) }),
};
const optionNames = Object.keys(optionReaders);

function readAccount(line: string, number: number): AccountLine {
  const [name = '', cli, ...options] = wordsOf(line);
  if (!accountNamePattern.test(name)) throw new Error(accountNameForm);
  if (cli === undefined || cli.includes('=')) throw new Error(`${name} needs its model CLI, as in: ${name} claude`);
  const read = options.map(readOption);
  const twice = read.find(([option], index) => read.findIndex(([other]) => other === option) < index);
  if (twice !== undefined) throw new Error(`the option ${twice[0]} is given twice`);
  const plain: AccountOptions = { home: null, tokenFile: null, owners: [], maxRunning: null, isSpare: false };
  const account = { name, cli, ...Object.assign({}, plain, ...read.map(([, option]) => option)), line: number };
  if ((account.home === null) === (account.tokenFile === null))
    throw new Error(`${name} needs either home= or token-file=`);
  return account;
}

function wordsOf(line: string): string[] {
  try {
    return shellWords(line);
  } catch (error) {
    throw new Error(`has ${(error as Error).message}`);
  }
}

function readOption(text: string): [name: string, option: Partial<AccountOptions>] {
  const [, name = text, value] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  const read = Object.hasOwn(optionReaders, name) ? optionReaders[name] : undefined;
  if (read === undefined) {
    const close = nearest(name.toLowerCase(), optionNames);
    throw new Error(
      `unknown option; ${close === null ? `the options are ${optionNames.join(', ')}` : `did you mean ${close}?`}`,
    );
  }
  try {
    return [name, read(value ?? '')];
  } catch (error) {
    throw new Error(`the option ${name} ${(error as Error).message}`);
  }
}

function readPath(value: string): string {
  if (!isAbsolute(value) || /[\0\n]/.test(value)) throw new Error('must be an absolute path');
  return normalize(value).replace(/(?<=.)\/$/, '');
}

function readOwner(text: string): ClientText {
  const person = /^sso:(.*)$/.exec(text)?.[1];
  if (person !== undefined && personName.test(person)) return ssoClient(person);
  const [, kind, name = ''] = ownerPattern.exec(text) ?? [];
  if (kind === undefined || (kind === 'user' && name.includes('/')))
    throw new Error(
      'must be API keys, local users and people who sign on, joined by +, such as key:ada+user:ada+sso:ada@example.org',
    );
  return clientText.parse(`${kind} ${name}`);
}

function readJobs(value: string): number {
  const jobs = /^\d{1,4}$/.test(value) ? Number(value) : 0;
  if (jobs >= 1 && jobs <= maxRunningJobs) return jobs;
  throw new Error(`must be a whole number from 1 to ${maxRunningJobs}`);
}

function readOn(value: string): true {
  if (value === 'on') return true;
  throw new Error('must be on');
}

/** Throws if another account has the same name or login. One login in two accounts would be renewed twice at once. */
function checkUnique({ name, home, tokenFile }: AccountLine, others: readonly AccountLine[]): void {
  for (const other of others) {
    if (other.name === name) throw new Error(`another account already has the name ${name} (line ${other.line})`);
    const isSameLogin =
      (tokenFile !== null && tokenFile === other.tokenFile) ||
      (home !== null && other.home !== null && (isWithin(home, other.home) || isWithin(other.home, home)));
    if (isSameLogin)
      throw new Error(`${name} has the login of ${other.name} (line ${other.line}), or a HOME around it`);
  }
}

/** Whether the path is the folder or below it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`);
}
