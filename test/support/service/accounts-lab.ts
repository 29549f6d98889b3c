import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { type TemporaryFolder, temporaryFolder } from '../basics/folder.js';
import { type Answer, type Service, script, startService } from './service.js';

const keyOf = (person: string) => `the-key-of-${person}-in-this-test`;

/** Returns the headers with the key of a person. */
export function keyHeaders(person: string): Record<string, string> {
  return { 'x-api-key': keyOf(person) };
}

/** Returns the text of a keys file with a key for each person. `people`: options of each key. */
export function keysFileOf(people: Readonly<Record<string, string>>): string {
  const lines = Object.entries(people).map(
    ([name, options]) => `${name}:sha256:${digestOf(keyOf(name))}${options === '' ? '' : ':'}${options}\n`,
  );
  return lines.join('');
}

/** Service whose model answers with the login in its HOME, with a HOME for each account and a key for each person. */
export class AccountsLab implements AsyncDisposable {
  readonly folder: TemporaryFolder;
  readonly service: Service;
  readonly #cli: string;

  constructor(folder: TemporaryFolder, service: Service, cli: string) {
    this.folder = folder;
    this.service = service;
    this.#cli = cli;
  }

  /** `accounts`: options of each account without its HOME. `people`: options of each key. */
  static async start(
    accounts: Readonly<Record<string, string>>,
    people: Readonly<Record<string, string>>,
    env: Readonly<Record<string, string>> = {},
  ): Promise<AccountsLab> {
    const folder = await temporaryFolder();
    const path = (name: string) => join(folder.path, name);
    await writeFile(path('keys'), keysFileOf(people), { mode: 0o600 });
    await writeFile(path('record'), '');
    for (const name of Object.keys(accounts)) await addHome(folder.path, name);
    const cli = env.MODEL_API_CLI ?? 'command';
    await writeFile(path('accounts'), linesOf(folder.path, accounts, cli));
    const service = await startService({
      env: {
        MODEL_API_CLI: 'command',
        MODEL_API_CLI_COMMAND: script('shows-its-login.sh', path('record')),
        MODEL_API_KEYS_FILE: path('keys'),
        MODEL_API_ACCOUNTS_FILE: path('accounts'),
        ...env,
      },
    });
    await writeFile(join(service.home, 'login'), 'login of the service');
    return new AccountsLab(folder, service, cli);
  }

  headers(person: string): Record<string, string> {
    return keyHeaders(person);
  }

  ask(person: string, prompt: string): Promise<Answer> {
    return this.service.post('/ask', { prompt }, this.headers(person));
  }

  /** Replaces the accounts file, and creates missing HOMEs. */
  async writeAccounts(accounts: Readonly<Record<string, string>>): Promise<void> {
    for (const name of Object.keys(accounts)) await addHome(this.folder.path, name);
    await this.writeText(linesOf(this.folder.path, accounts, this.#cli));
  }

  async writeText(text: string): Promise<void> {
    const draft = join(this.folder.path, 'accounts.new');
    await writeFile(draft, text);
    await rename(draft, join(this.folder.path, 'accounts'));
  }

  /** Lets questions with the word slowly wait in this account, until the returned function is called. */
  async holdAnswers(account: string): Promise<() => Promise<void>> {
    const file = join(this.homeOf(account), 'waits');
    await writeFile(file, '');
    return () => rm(file);
  }

  homeOf(account: string): string {
    return join(this.folder.path, account);
  }

  /** All questions that a model got, each with its login. */
  async record(): Promise<{ readonly login: string; readonly question: string }[]> {
    const lines = (await readFile(join(this.folder.path, 'record'), 'utf8')).trim().split('\n');
    return lines.map((line) => {
      const [login = '', question = ''] = line.split(': ');
      return { login, question };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    await this.folder[Symbol.asyncDispose]();
  }
}

async function addHome(folder: string, name: string): Promise<void> {
  await mkdir(join(folder, name), { mode: 0o700, recursive: true });
  const file = join(folder, name, 'login');
  await writeFile(file, `login of ${name}`, { flag: 'wx' }).catch(() => {}); // a program may read the present one
}

function linesOf(folder: string, accounts: Readonly<Record<string, string>>, cli: string): string {
  return Object.entries(accounts)
    .map(([name, options]) => `${name} ${cli} home=${join(folder, name)} ${options}\n`)
    .join('');
}
