import { constants } from 'node:fs';
import { access, lstat } from 'node:fs/promises';
import type { Adapter, PrivateHome } from '../../primary/cli/contract/adapter.js';
import type { LoginSettings } from '../../primary/cli/logins.js';
import type { AtLeastOne, NamedAdapter } from '../../primary/cli/models.js';
import { ConfigFault } from '../../shared/config/config.js';
import { isToken, tokenFault } from '../../shared/config/secrets.js';
import { readSmallFile } from '../../shared/config/small-file.js';
import { fileFault, meaningOf } from '../../shared/text/system-error.js';
import type { AccountsSource, PreparedAccount, PreparedAccounts } from './accounts.js';
import {
  type AccountLine,
  type ClosedAccount,
  isWithin,
  maxAccountsFileBytes,
  readAccountsFile,
} from './accounts-file.js';
import { realPath } from './login-fence.js';

/** Reads the accounts file. Rejects with a ConfigFault if the file is unreadable. */
export async function accountsSource(path: string, settings: LoginSettings): Promise<AccountsSource> {
  const prepare = (text: string) => prepareAccounts(text, settings);
  const read = () => readSmallFile(path, maxAccountsFileBytes);
  const text = await read().catch((error: NodeJS.ErrnoException) => {
    throw new ConfigFault([`MODEL_API_ACCOUNTS_FILE: ${fileFault(path, error)}`]);
  });
  return { path, read, first: await prepare(text), prepare };
}

/** Prepares the accounts of a text of the accounts file. Each fault has the number of its line. */
export async function prepareAccounts(text: string, settings: LoginSettings): Promise<PreparedAccounts> {
  const { accounts: lines, closed, isCutOff, faults } = readAccountsFile(text);
  const accounts: PreparedAccount[] = [];
  const allClosed = [...closed];
  const allFaults = [...faults];
  const places = await LoginPlaces.startWith(settings);
  for (const line of lines) {
    try {
      const place = await realPath(line.home ?? line.tokenFile ?? '');
      places.addPlace(line, place);
      const account = await prepareAccount(line, place, settings);
      await places.addFile(line.name, account.adapter);
      accounts.push(account);
    } catch (error) {
      allFaults.push(`line ${line.line}: ${(error as Error).message}`);
      allClosed.push({ ...line, homes: line.home === null ? [] : [line.home] });
    }
  }
  const resolved = allClosed.map(async (each) => ({ ...each, homes: await realHomes(each, settings) }));
  return { accounts, closed: await Promise.all(resolved), isCutOff, faults: allFaults };
}

/** Returns the HOMEs of a closed account without symbolic links, except those around the HOME of the service, which its programs need. */
async function realHomes({ homes }: ClosedAccount, { env }: LoginSettings): Promise<string[]> {
  const serviceHome = env.HOME ? await realPath(env.HOME) : null;
  const places = await Promise.all(homes.map(realPath));
  return places.filter((place) => serviceHome === null || !isWithin(serviceHome, place));
}

/** Places of the logins, without symbolic links. Two accounts with one login would renew it at once. */
class LoginPlaces {
  /** HOMEs and files with tokens, each with the name of its account. */
  readonly #places = new Map<string, string>();
  readonly #homes: { readonly name: string; readonly home: string }[] = [];
  /** Files of renewed logins, each with the name of its account. */
  readonly #files = new Map<string, string>();

  /** Returns the places of the service itself. The HOMEs of the accounts may be in its HOME. */
  static async startWith({ env, clis }: LoginSettings): Promise<LoginPlaces> {
    const places = new LoginPlaces();
    if (env.HOME) places.#places.set(await realPath(env.HOME), 'the service');
    for (const { adapter } of clis) await places.addFile('the service', adapter);
    return places;
  }

  /** Throws if another account has this place, or a HOME around it. */
  addPlace({ name, home }: AccountLine, place: string): void {
    const around = this.#homes.find((each) => isWithin(each.home, place) || isWithin(place, each.home))?.name;
    const other = this.#places.get(place) ?? (home === null ? undefined : around);
    if (other !== undefined) throw new Error(`${name} has the login of ${other}`);
    this.#places.set(place, name);
    if (home !== null) this.#homes.push({ name, home: place });
  }

  /** Throws if another account has this login, through a symbolic link in its HOME. */
  async addFile(name: string, { login }: Pick<Adapter, 'login'>): Promise<void> {
    if (login === undefined) return;
    const path = await realPath(login.path);
    const other = this.#files.get(path) ?? name;
    if (other !== name) throw new Error(`${name} has the login of ${other}: both use ${path}`);
    this.#files.set(path, name);
  }
}

/** Prepares an account. `place`: its HOME without symbolic links, so that a changed link changes no running account. */
async function prepareAccount(
  line: AccountLine,
  place: string,
  { config, env, clis, create }: LoginSettings,
): Promise<PreparedAccount> {
  const { name: cli, adapter: own } = findCli(line, clis);
  if (line.tokenFile !== null && own.credentialVariable === null)
    throw new Error(`${cli} takes no token, so ${line.name} needs home=`);
  const token = line.tokenFile === null ? null : await readToken(line.tokenFile);
  const { homeLogin = {} } = line.home === null ? {} : own;
  if (homeLogin === null) {
    const advice = own.homeLoginAdvice === undefined ? '' : `: ${own.homeLoginAdvice}`;
    throw new Error(`${cli} has no login in its HOME, so ${line.name} cannot be an account of it${advice}`);
  }
  const { HOME: _, ...others } = env;
  const accountEnv = line.home === null ? others : { ...others, ...homeLogin, HOME: place };
  const cliEnv = [...config.cliEnv.filter((name) => !choosesLogin.test(name)), ...Object.keys(homeLogin)];
  const adapter = await create(cli, { ...config, cliEnv, oauthToken: token }, accountEnv);
  const needsHome = line.home === null && adapter.home === undefined;
  const findFault = async () => (line.home === null ? null : homeFault(line.name, place));
  return {
    ...{ line, realHome: line.home === null ? null : place, cli, env: accountEnv, cliEnv, token, findFault },
    adapter: needsHome ? { ...adapter, home: emptyHome } : adapter,
  };
}

/** Variables in MODEL_API_CLI_ENV that could make a program use another login than that of its account. */
const choosesLogin =
  /(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?|HOME|CONFIG_DIR)(?:_FILE)?$|^(?:AWS|GOOGLE|AZURE)_|_USE_/;

/** HOME of a process whose account has only a token. */
const emptyHome: PrivateHome = { variables: { HOME: '.' }, files: [], links: [] };

/** Finds the CLI of an account by its name, else by its kind. */
function findCli({ name, cli }: AccountLine, clis: AtLeastOne<NamedAdapter>): NamedAdapter {
  const named = clis.find((each) => each.name === cli);
  const [byKind, second] = clis.filter(({ adapter }) => adapter.name === cli);
  if (named !== undefined) return named;
  if (byKind !== undefined && second === undefined) return byKind;
  const known = clis.map((each) => each.name).join(', ');
  throw new Error(`the model CLI ${cli} of ${name} is not one of this service: ${known}`);
}

async function readToken(path: string): Promise<string> {
  const text = await readSmallFile(path, maxAccountsFileBytes).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the option token-file: ${fileFault(path, error)}`);
  });
  if (isToken(text.trim())) return text.trim();
  throw new Error(`the option token-file: ${path} ${tokenFault}`);
}

const othersMayEnter = 0o077;

/** Returns why a folder cannot be the HOME of an account; null if it can. */
async function homeFault(name: string, home: string): Promise<string | null> {
  try {
    const folder = await lstat(home);
    if (!folder.isDirectory()) return `the HOME of the account ${name} is not a folder`;
    if (folder.uid !== process.geteuid?.())
      return `the HOME of the account ${name} belongs to another user: chown it to the user of the service`;
    if ((folder.mode & othersMayEnter) !== 0)
      return `other users can enter the HOME of the account ${name}: chmod 700 it`;
    await access(home, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT')
      return `the HOME of the account ${name} does not exist (prompt-relay accounts login ${name})`;
    return `the service cannot write in the HOME of the account ${name}: ${meaningOf(error as NodeJS.ErrnoException)}`;
  }
}
