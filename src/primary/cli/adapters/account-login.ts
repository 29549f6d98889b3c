import { readFile, realpath, stat } from 'node:fs/promises';
import { type AccountLine, readAccountsFile } from '../../../shared/config/accounts-file.js';
import { type Config, ConfigFault, type Environment } from '../../../shared/config/config.js';
import { isToken, tokenFault } from '../../../shared/config/secrets.js';
import { fileFault } from '../../../shared/text/system-error.js';
import type { AccountsSource, PreparedAccount, PreparedAccounts } from '../accounts.js';
import type { Adapter, PrivateHome } from '../contract/adapter.js';
import type { AtLeastOne, NamedAdapter } from '../models.js';

/** Creates the adapter of the CLI with this name for another configuration and environment. */
export type CreateAccountAdapter = (name: string, config: Config, env: Environment) => Promise<Adapter>;

/**
 * Reads the accounts file; null if none is configured. Rejects with a ConfigFault for a file that is unreadable or has
 * a fault.
 */
export async function accountsSource(
  config: Config,
  env: Environment,
  clis: AtLeastOne<NamedAdapter>,
  create: CreateAccountAdapter,
): Promise<AccountsSource | null> {
  const { accountsFile: path } = config;
  if (path === null) return null;
  const prepare = (text: string) => prepareAccounts(text, { config, env, clis, create });
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ConfigFault([`MODEL_API_ACCOUNTS_FILE: ${fileFault(path, error)}`]);
  });
  const { accounts, faults } = await prepare(text);
  if (faults.length > 0) throw new ConfigFault(faults.map((fault) => `MODEL_API_ACCOUNTS_FILE: ${fault}`));
  return { path, first: accounts, prepare };
}

export interface AccountSettings {
  readonly config: Config;
  readonly env: Environment;
  readonly clis: AtLeastOne<NamedAdapter>;
  readonly create: CreateAccountAdapter;
}

/** Prepares the accounts of a text of the accounts file. Each fault has the number of its line. */
export async function prepareAccounts(text: string, settings: AccountSettings): Promise<PreparedAccounts> {
  const { accounts: lines, faults } = readAccountsFile(text);
  const accounts: PreparedAccount[] = [];
  const allFaults = [...faults];
  const places = new Map([[await realPath(settings.env.HOME ?? ''), 'the service']]);
  for (const line of lines) {
    try {
      const place = await realPath(line.home ?? line.tokenFile ?? '');
      const other = places.get(place);
      if (other !== undefined) throw new Error(`${line.name} has the login of ${other}`);
      places.set(place, line.name);
      accounts.push(await prepareAccount(line, settings));
    } catch (error) {
      allFaults.push(`line ${line.line}: ${(error as Error).message}`);
    }
  }
  return { accounts, faults: allFaults };
}

/** Returns the path without symbolic links; the same path if it does not exist. */
function realPath(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

async function prepareAccount(
  line: AccountLine,
  { config, env, clis, create }: AccountSettings,
): Promise<PreparedAccount> {
  const { name: cli, adapter: own } = findCli(line, clis);
  if (line.tokenFile !== null && own.credentialVariable === null)
    throw new Error(`${cli} takes no token, so ${line.name} needs home=`);
  const token = line.tokenFile === null ? null : await readToken(line.tokenFile);
  const { HOME: _, ...others } = env;
  const accountEnv = line.home === null ? others : { ...others, HOME: line.home };
  const cliEnv = config.cliEnv.filter((name) => !choosesLogin.test(name));
  const adapter = await create(cli, { ...config, cliEnv, oauthToken: token }, accountEnv);
  const needsHome = line.home === null && adapter.home === undefined;
  const findFault = async () => (line.home === null ? null : homeFault(line.name, line.home));
  return {
    ...{ line, cli, env: accountEnv, cliEnv, token, findFault },
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
  throw new Error(`the model CLI ${cli} of ${name} is none of this service: ${known}`);
}

async function readToken(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the option token-file: ${fileFault(path, error)}`);
  });
  if (isToken(text.trim())) return text.trim();
  throw new Error(`the option token-file: ${path} ${tokenFault}`);
}

const othersMayEnter = 0o077;

/** Returns why a folder cannot be the HOME of an account; null if it can. */
async function homeFault(name: string, home: string): Promise<string | null> {
  try {
    const folder = await stat(home);
    if (!folder.isDirectory()) return `the HOME of the account ${name} is not a folder`;
    if (folder.uid !== process.geteuid?.()) return `the HOME of the account ${name} belongs to another user`;
    return (folder.mode & othersMayEnter) === 0
      ? null
      : `other users can enter the HOME of the account ${name}: chmod 700 it`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT')
      return `the HOME of the account ${name} does not exist (prompt-relay accounts login ${name})`;
    return `the HOME of the account ${name} cannot be read (${code})`;
  }
}
