import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { alignColumns } from '../../command/base/columns.js';
import { type CommandArguments, type CommandContext, clientFor, show } from '../../command/base/command.js';
import { CommandError, exitCodes, usageError } from '../../command/base/errors.js';
import { printUse } from '../../command/base/file-in-use.js';
import { editLines, type LineFile, withLines } from '../../command/base/line-file.js';
import { type AccountBody, accountList } from '../../shared/api/accounts.js';
import { healthBody } from '../../shared/api/health.js';
import { shellWords } from '../../shared/config/clis.js';
import { accountNamePattern } from '../../shared/config/values.js';
import { formatCount, shellWord } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import { fileFault, meaningOf } from '../../shared/text/system-error.js';
import { type AccountLine, accountNameForm, readAccountsFile } from './accounts-file.js';

/** Options of a new account, with the names that the accounts file uses. */
const optionNames = ['home', 'token-file', 'owners', 'jobs'];

/** Runs the command `accounts`, which shows the accounts of a service, and edits the accounts file without one. */
export function runAccounts(args: CommandArguments, context: CommandContext): Promise<number> {
  const [action = 'list', ...rest] = args.positionals;
  const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
  if (act === undefined) throw usageError('accounts', 'the action must be list, check, add, login or remove');
  const unexpected = rest[argumentCounts[action] ?? 0];
  if (unexpected !== undefined) throw usageError('accounts', `${action}: unexpected argument ${unexpected}`);
  const useless = optionNames.find((flag) => args.value(flag) !== undefined && action !== 'add');
  if (useless !== undefined) throw usageError('accounts', `${action}: --${useless} is only for add`);
  return act(args, context, rest);
}

type AccountAction = (args: CommandArguments, context: CommandContext, words: readonly string[]) => Promise<number>;

/** Numbers of arguments after the action; 0 for any other action. */
const argumentCounts: Readonly<Record<string, number>> = { add: 2, login: 1, remove: 1 };

const actions: Readonly<Record<string, AccountAction>> = {
  list: async (args, context) => {
    const list = await (await clientFor(args, context)).getState('/accounts', accountList);
    return show(args, context.terminal, list, (paint) => renderAccounts(list.accounts, context.clock.now(), paint));
  },
  check: async (args, context) => {
    const client = await clientFor(args, context);
    await client.post('/health/recheck', healthBody);
    const list = await client.getState('/accounts', accountList);
    await show(args, context.terminal, list, (paint) => renderAccounts(list.accounts, context.clock.now(), paint));
    return list.accounts.every(isUsable) ? exitCodes.ok : exitCodes.failed;
  },
  add: async (args, context, [name, cli]) => {
    if (name === undefined || cli === undefined)
      throw usageError('accounts', 'add: name the account and its model CLI');
    if (!accountNamePattern.test(name)) throw usageError('accounts', `add: ${accountNameForm}`);
    if (!/^[\w-]+$/.test(cli)) throw usageError('accounts', 'add: the model CLI must be a name such as claude');
    const path = filePath(args, context);
    let added: AccountLine | null = null;
    await editLines(accountsFile, path, context.clock, true, (text) => {
      const line = lineOf(name, cli, args, readAccountsFile(text).accounts);
      added = checkedLine(line);
      return withLines(text, [line]);
    });
    const home = homeOf(added);
    const isRoots = home !== null && (await createHome(home, `the account ${name} is in ${path}, but `));
    if (args.has('json')) await context.terminal.writeJson({ name, cli, home });
    const next = home === null ? '' : ` Log in with "prompt-relay accounts login ${name}".`;
    const owner = isRoots ? ` ${ownerHint(home)}` : '';
    context.terminal.sentences(`The account ${name} is in ${path}.${owner}${next}`);
    await printUse(reloadedAccounts, path, args, context);
    return exitCodes.ok;
  },
  login: async (args, context, [name]) => {
    if (name === undefined) throw usageError('accounts', 'login: name the account');
    const { accounts: known, faults } = await readFileOf(args, context);
    const account = known.find((each) => each.name === name);
    if (account === undefined) throw unknownAccount(name, faults);
    if (account.home === null)
      throw new CommandError(exitCodes.config, `accounts: the token of ${name} belongs in ${account.tokenFile}`);
    return logIn(account, account.home, args, context);
  },
  remove: async (args, context, [name]) => {
    if (name === undefined) throw usageError('accounts', 'remove: name the account');
    const path = filePath(args, context);
    let removed: AccountLine | null = null;
    await editLines(accountsFile, path, context.clock, false, (text) => {
      const { accounts: known, closed } = readAccountsFile(text);
      removed = known.find((account) => account.name === name) ?? null;
      const lines = [...known, ...closed].filter((account) => account.name === name).map(({ line }) => line - 1);
      if (lines.length === 0) throw unknownAccount(name, []);
      return text
        .split('\n')
        .filter((_, index) => !lines.includes(index))
        .join('\n');
    });
    if (args.has('json')) await context.terminal.writeJson({ name, removed: true });
    const home = homeOf(removed);
    const hint = home === null ? '' : ` Its login is still in ${home}.`;
    context.terminal.sentences(`The account ${name} was removed from ${path}.${hint}`);
    await printUse(reloadedAccounts, path, args, context);
    return exitCodes.ok;
  },
};

/** Everybody may read a new accounts file: root creates it, the service's user must read it, and it has no secrets. */
const accountsFile: LineFile = {
  command: 'accounts',
  mode: 0o644,
  faultsOf: (text) => readAccountsFile(text).faults,
};
const reloadedAccounts = {
  name: 'accounts_file',
  variable: 'MODEL_API_ACCOUNTS_FILE',
  event: 'accounts_rejected',
} as const;
/**
 * Folder for the homes of accounts. It is outside the service's HOME, because a model CLI may read and write everything
 * in that HOME.
 */
const defaultFolder = '/var/lib/prompt-relay-accounts';

function homeOf(account: AccountLine | null): string | null {
  return account?.home ?? null;
}

function unknownAccount(name: string, faults: readonly string[]): CommandError {
  const why = faults.length === 0 ? '' : `, and has faults: ${faults.join('; ')}`;
  return new CommandError(exitCodes.usage, `accounts: the file has no account named ${name}${why}`);
}

/** Returns the line of a new account. Without a place for its login, its HOME is beside those of the other accounts. */
function lineOf(name: string, cli: string, args: CommandArguments, others: readonly AccountLine[]): string {
  const sibling = others.findLast(({ home }) => home !== null)?.home;
  const folder = sibling == null ? defaultFolder : dirname(sibling);
  const hasPlace = args.value('home') !== undefined || args.value('token-file') !== undefined;
  const place = hasPlace ? [] : [`home=${shellWord(join(folder, name))}`];
  const options = optionNames.flatMap((flag) => {
    const value = args.value(flag);
    return value === undefined ? [] : [`${flag}=${shellWord(value)}`];
  });
  return [name, cli, ...place, ...options].join(' ');
}

function checkedLine(line: string): AccountLine {
  const { accounts: made, faults } = readAccountsFile(`${line}\n`);
  const [account] = made;
  if (account !== undefined && made.length === 1) return account;
  throw usageError('accounts', `add: ${(faults[0] ?? 'an option is wrong').replace(/^line 1: /, '')}`);
}

/**
 * Creates the HOME of an account. If root does, it gets the owner of the folder around it: the user of the service.
 * Returns whether the HOME belongs to root. `context`: what the user must know if it fails.
 */
async function createHome(home: string, context = ''): Promise<boolean> {
  try {
    const first = await mkdir(home, { recursive: true, mode: 0o700 });
    if (first === undefined || process.geteuid?.() !== 0) return (await stat(home)).uid === 0;
    const { uid, gid } = await stat(dirname(first));
    for (let folder = home; folder.length >= first.length; folder = dirname(folder)) await chown(folder, uid, gid);
    return uid === 0;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const fault = code === 'EEXIST' ? `${home} is not a folder` : fileFault(home, error as NodeJS.ErrnoException);
    throw new CommandError(exitCodes.config, `accounts: ${context}${fault}`);
  }
}

function ownerHint(home: string): string {
  return `${home} belongs to root: if the service has another user, chown the folder to this user.`;
}

/** Throws a CommandError unless the service would use the HOME, and this user may run programs as its owner. */
async function checkHome(home: string): Promise<{ readonly uid: number; readonly gid: number }> {
  const { uid, gid, mode } = await stat(home);
  const refuse = (fault: string) => new CommandError(exitCodes.config, `accounts: ${home} ${fault}`);
  const user = process.geteuid?.();
  if (user !== 0 && uid !== user) throw refuse('belongs to another user: run this command as that user or as root');
  if ((mode & 0o077) !== 0)
    throw refuse('can be entered by other users, so the service would not use it: chmod 700 it');
  return { uid, gid };
}

function filePath(args: CommandArguments, { env }: CommandContext): string {
  const path = args.value('file') ?? env.MODEL_API_ACCOUNTS_FILE;
  if (path) return path;
  throw new CommandError(exitCodes.usage, 'accounts: name the file with --file, or set MODEL_API_ACCOUNTS_FILE');
}

async function readFileOf(args: CommandArguments, context: CommandContext) {
  const path = filePath(args, context);
  try {
    return readAccountsFile(String(await context.files.readRegular(path)));
  } catch (error) {
    throw new CommandError(exitCodes.config, `accounts: ${fileFault(path, error as NodeJS.ErrnoException)}`);
  }
}

/** Variables for the login of a model CLI. */
const loginVariables = [
  ...['PATH', 'TERM', 'LANG', 'TZ', 'HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'],
];

/** Runs the login of the model CLI in this terminal, with the HOME of the account and as its owner. */
async function logIn(
  { name, cli }: AccountLine,
  home: string,
  args: CommandArguments,
  { terminal, loginPrograms, env }: CommandContext,
): Promise<number> {
  const commandLine = args.value('program') ?? loginPrograms[cli];
  if (commandLine === undefined)
    throw usageError('accounts', `login: name the program that logs in to ${cli}, with --program`);
  const [program, ...words] = wordsOf(commandLine);
  if (program === undefined) throw usageError('accounts', 'login: --program is empty');
  const isRoots = await createHome(home);
  const owner = await checkHome(home);
  if (isRoots) terminal.sentences(ownerHint(home));
  terminal.sentences(`This is the login of ${basename(program)} for the account ${name}. Ctrl-C cancels it.`);
  using _ = terminal.onInterrupt(() => {}); // Ctrl-C also reaches the program, which ends itself
  const isRoot = process.geteuid?.() === 0;
  const login = Object.fromEntries(loginVariables.map((variable) => [variable, env[variable]]));
  const child = spawn(program, words, {
    cwd: home,
    env: { ...login, HOME: home },
    stdio: 'inherit',
    ...(isRoot && owner),
  });
  const [code, signal] = (await once(child, 'exit').catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(exitCodes.config, `accounts: ${startFault(program, error)}`);
  })) as [number | null, NodeJS.Signals | null];
  if (signal === 'SIGINT' || code === exitCodes.interrupted)
    throw new CommandError(exitCodes.interrupted, 'accounts: the login was cancelled');
  if (code !== 0)
    throw new CommandError(exitCodes.failed, `accounts: the login has ended with the code ${code ?? signal}`);
  terminal.sentences(`The login of ${name} is in ${home}. "prompt-relay accounts check" shows whether it works.`);
  return exitCodes.ok;
}

function startFault(program: string, error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return `${program} is not on the PATH: name the program with --program`;
  const hint = error.code === 'EACCES' ? ' (the owner of the HOME needs access to it, and to the HOME)' : '';
  return `${program} cannot be started: ${meaningOf(error)}${hint}`;
}

function wordsOf(commandLine: string): string[] {
  try {
    return shellWords(commandLine);
  } catch (error) {
    throw usageError('accounts', `--program: has ${(error as Error).message}`);
  }
}

function isUsable({ status, breaker }: AccountBody): boolean {
  return status !== 'not_ready' && breaker.state === 'closed';
}

function renderAccounts(list: readonly AccountBody[], nowMs: number, paint: Paint): string[] {
  if (list.length === 0) return ['No account is yours.'];
  const rows = list.map((account) => [
    escaped(account.name ?? 'service'),
    escaped(account.cli),
    stateOf(account, paint),
    quotaOf(account),
    account.owners.length === 0 ? 'for all' : escaped(account.owners.join(' ')),
    account.last_used_at === null ? 'not used yet' : `used ${ageOf(nowMs - Date.parse(account.last_used_at))}`,
  ]);
  const faults = list.flatMap(({ name, error }) =>
    error === undefined ? [] : [`${paint.red('fault')}  ${escaped(name ?? 'service')}: ${escaped(error)}`],
  );
  return [...alignColumns(rows), ...faults];
}

function stateOf({ status, breaker, jobs, needs_login: needsLogin }: AccountBody, paint: Paint): string {
  if (needsLogin) return paint.red('needs a login');
  if (breaker.state !== 'closed') return paint.red(`blocked: ${breaker.reason}`);
  if (status === 'not_ready') return paint.red('not ready');
  if (status === 'unknown') return 'not checked yet';
  return jobs === 0 ? 'ready' : `ready, ${formatCount(jobs, 'job')}`;
}

function quotaOf({ breaker: { windows }, weight }: AccountBody): string {
  const used = windows.flatMap(({ name, utilization }) =>
    utilization === null ? [] : [`${name} ${Math.round(utilization * 100)} %`],
  );
  if (used.length === 0) return 'quota unknown';
  return [...used, ...(weight === 1 ? [] : [`weight ${weight}`])].join(', ');
}

function ageOf(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return 'just now';
  return minutes < 120 ? `${minutes} min ago` : `${Math.round(minutes / 60)} h ago`;
}
