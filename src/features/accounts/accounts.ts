import { shownFaults } from '../../primary/access/file-faults.js';
import { type FileListener, WatchedFile } from '../../primary/access/watched-file.js';
import type { Adapter } from '../../primary/cli/contract/adapter.js';
import { type Logins, type LoginsParts, startChecks } from '../../primary/cli/logins.js';
import { type CliHost, ModelCli, sharedProgram } from '../../primary/cli/model-cli.js';
import type { AtLeastOne } from '../../primary/cli/models.js';
import type { CliProgram } from '../../primary/cli/process/program.js';
import type { Secret } from '../../primary/cli/process/redactor.js';
import type { AccountJob } from '../../primary/cli/route.js';
import { setNewest } from '../../shared/bounded-map.js';
import { type ClientText, optionHolder, readClientId } from '../../shared/client.js';
import type { Config, Environment } from '../../shared/config/config.js';
import type { Logger } from '../../shared/log/logger.js';
import { fileFault } from '../../shared/text/system-error.js';
import { eligibleAccounts, pickAccount } from './account-choice.js';
import { AccountTurns } from './account-turns.js';
import { type AccountLine, type AccountsFileContent, type ClosedAccount, readAccountsFile } from './accounts-file.js';
import { LoginFence, type LoginPlace } from './login-fence.js';
import { weightOf } from './quota-share.js';
import type { AccountLogger } from './shared.js';

/** Account with all that its instance of the model CLI needs. */
export interface PreparedAccount {
  readonly line: AccountLine;
  /** Its HOME without symbolic links; null if a file has the token. */
  readonly realHome: string | null;
  /** Name of the model CLI. */
  readonly cli: string;
  readonly adapter: Adapter;
  /** Environment of the service with the HOME of the account. */
  readonly env: Environment;
  /** Names of the variables that its processes inherit. */
  readonly cliEnv: Config['cliEnv'];
  readonly token: string | null;
  /** Returns why the login cannot be used; null if nothing is known. */
  readonly findFault: () => Promise<string | null>;
}

/** Accounts of a text of the accounts file, and the faults of the file. */
export interface PreparedAccounts extends Omit<AccountsFileContent, 'accounts'> {
  readonly accounts: readonly PreparedAccount[];
}

export const noAccounts: PreparedAccounts = { accounts: [], closed: [], isCutOff: false, faults: [] };

type PrepareAccounts = (text: string) => Promise<PreparedAccounts>;

/** Accounts at the start of the service, and how to read a changed file. */
export interface AccountsSource {
  readonly path: string;
  /** Reads the file. Rejects if it is not a small file. */
  readonly read: () => Promise<string>;
  readonly first: PreparedAccounts;
  readonly prepare: PrepareAccounts;
}

/** Parts for the instances of the model CLIs. */
export type AccountParts = Pick<LoginsParts, 'config' | 'host' | 'names' | 'serials' | 'context'>;

interface NamedAccount {
  readonly prepared: PreparedAccount;
  readonly cli: ModelCli;
}

/** Conversations whose account is remembered, and combinations of accounts; the least recently used are forgotten. */
const maxConversations = 10_000;
const maxGroups = 1000;

/** Maximum number of checks at once. All CLIs of a service without accounts are checked at once. */
const maxChecks = 8;

/** Owns the accounts of all model CLIs, and which of them serves a job. */
export class CliAccounts implements Logins {
  readonly variable = 'MODEL_API_ACCOUNTS_FILE';
  /**
   * The accounts in use of each CLI, in the order of the CLIs. The array changes in place with the accounts file, so
   * that every part that has it sees the present accounts.
   */
  readonly clis: AtLeastOne<ModelCli>;
  /** Array behind `clis`, which changes in place when the accounts change. */
  readonly #inUse: [ModelCli, ...ModelCli[]];
  /** The logins of the service, one for each CLI. */
  readonly #serviceClis: AtLeastOne<ModelCli>;
  readonly #parts: AccountParts;
  readonly #accountsOf: (client: ClientText) => readonly string[] | null;
  readonly #isShared: boolean;
  #named: ReadonlyMap<string, NamedAccount> = new Map();
  /** Accounts whose lines have faults. */
  #closed: readonly ClosedAccount[] = [];
  /** Removed accounts, whose jobs may still run. */
  #retired: NamedAccount[] = [];
  readonly #programs = new Map<string, CliProgram>();
  /** Turns of the accounts that may serve the same clients, by their names. */
  readonly #turns = new Map<string, AccountTurns<ModelCli>>();
  /** Label of the account that had the last turn of each conversation. */
  readonly #lastTurns = new Map<string, string>();
  #isStarted = false;
  /** Watch of the accounts file; null without one. */
  #file: WatchedFile | null = null;
  readonly #started = new Set<ModelCli>();
  /** Resolves when all first checks have ended, which run one after another. */
  #checked: Promise<unknown> = Promise.resolve();

  /**
   * `accountsOf`: names of accounts in the API key of a client; null if it has none. `isShared`: whether accounts share
   * the jobs of a client by what is left of their quotas; otherwise the first usable one serves.
   */
  constructor(
    serviceClis: AtLeastOne<ModelCli>,
    parts: AccountParts,
    accountsOf: (client: ClientText) => readonly string[] | null,
    first: PreparedAccounts = noAccounts,
    isShared = false,
  ) {
    this.#isShared = isShared;
    this.#serviceClis = serviceClis;
    this.#parts = parts;
    this.#accountsOf = accountsOf;
    this.#inUse = [...serviceClis];
    this.clis = this.#inUse;
    this.replace(first);
  }

  /** All instances with processes: those in use, the unused logins of the service, and removed accounts. */
  get all(): readonly ModelCli[] {
    return [...new Set([...this.#serviceClis, ...this.clis, ...this.#retired.map(({ cli }) => cli)])];
  }

  /** Named accounts, in the order of the file. */
  get named(): readonly ModelCli[] {
    return [...this.#named.values()].map(({ cli }) => cli);
  }

  /** Logins of the service that accounts without owners replace. */
  get unused(): readonly ModelCli[] {
    return this.#serviceClis.filter(({ isServing }) => !isServing);
  }

  /** Returns the account that lists the models of a CLI and shows its version: the first in use. */
  firstOf(cli: ModelCli): ModelCli {
    return this.clis.find(({ name }) => name === cli.name) ?? cli;
  }

  /** Tokens of the accounts, also of removed ones, whose programs may still print them. */
  get secrets(): Secret[] {
    return [...this.#named.values(), ...this.#retired].flatMap(({ prepared: { token, line } }) =>
      token === null ? [] : [{ name: `token of ${line.name}`, value: token }],
    );
  }

  warnings(keyClients: readonly ClientText[]): string[] {
    return ownerWarnings(this.named, keyClients);
  }

  /** Sets the watch of the accounts file, which `startChecks` starts. */
  watch(file: WatchedFile): void {
    this.#file = file;
  }

  startChecks(): void {
    this.#isStarted = true;
    this.#startNew();
    this.#file?.startWatching();
  }

  async reread(): Promise<void> {
    await this.#file?.reread();
  }

  /** Checks a few accounts at a time, because each check starts a program. */
  async checkAll(): Promise<void> {
    const left = [...this.clis];
    const checkNext = async () => {
      for (let cli = left.shift(); cli !== undefined; cli = left.shift()) await cli.health.forceCheck();
    };
    await Promise.all(Array.from({ length: maxChecks }, checkNext));
  }

  /**
   * Replaces the accounts. An account with the same login keeps its processes and its state. A closed account, whose
   * line has a fault, serves no client; its present and former owners get no other account instead.
   */
  replace({ accounts, closed }: Pick<PreparedAccounts, 'accounts' | 'closed'>): void {
    const before = this.#named;
    this.#closed = closed.map((each) => this.#withOldParts(each));
    const places = this.#placesOf(accounts);
    const hasNewPlaces = fenceOf(this.#parts.host)?.replacePlaces(places) === true;
    this.#named = new Map(accounts.map((prepared) => [prepared.line.name, this.#instanceOf(prepared, before)]));
    const named = this.named;
    const inUse = this.#serviceClis.flatMap((cli) => {
      const accountsOfCli = named.filter(({ name }) => name === cli.name);
      const isOpen = ({ owners }: Pick<AccountLine, 'owners'>) => owners.length === 0;
      const closedOfCli = this.#closed.filter((each) => this.#mayBeOf(each, cli));
      const hasOpen = accountsOfCli.some(({ account }) => isOpen(account)) || closedOfCli.some(isOpen);
      cli.isServing = !hasOpen;
      cli.pool.keepsNoSessions = hasOpen;
      return hasOpen ? accountsOfCli : [cli, ...accountsOfCli];
    });
    this.#inUse.splice(0, this.#inUse.length, ...inUse);
    const removed = [...before.values()].filter(({ cli }) => !named.includes(cli));
    this.#retired = [...this.#retired.filter(({ cli }) => cli.jobs > 0), ...removed];
    for (const { cli } of removed) {
      this.#started.delete(cli);
      void cli.retire();
    }
    // a waiting process may have been started before a login was to be hidden from it
    for (const { pool } of hasNewPlaces ? this.all : this.unused) void pool.endIdleProcesses();
    if (this.#isStarted) this.#startNew();
  }

  /**
   * Returns the account that serves a job, for any account of its CLI; null if no account may serve its client. Prefers
   * the account that has the process of its conversation, and then, of those that share jobs, the one that had its last
   * turn.
   */
  choose(cli: ModelCli, { client, sessionId, circuit, account }: AccountJob) {
    const all = this.#eligible(cli, client);
    const eligible = account === null ? all : all.filter((each) => each.account.name === account);
    if (this.#named.size === 0) return eligible[0] === undefined ? null : { cli: eligible[0] };
    const id = sessionId();
    const last = id === null ? undefined : this.#lastTurns.get(id);
    const turns = this.#isShared ? this.#turnsOf(all) : null;
    const picked = pickAccount(eligible, (each) => ({
      isRefused: each.health.circuits.isBlocked(circuit),
      isNotReady: each.health.checks.current.status === 'not_ready',
      hasSession: id !== null && each.pool.hasSessionOf(id),
      hadTurn: turns !== null && last === each.label,
      jobs: each.jobs,
      maxRunning: each.account.maxRunning,
      isSpare: each.account.isSpare,
      share: turns && { turn: turns.nextOf(each), weight: this.#weightOf(each, circuit) },
    }));
    const hasLost = last !== undefined && !eligible.some(({ label }) => label === last);
    const loss = `the account of the conversation, ${last}, serves this client no longer, and `;
    return picked && { cli: picked.account, reason: `${hasLost ? loss : ''}${picked.reason}` };
  }

  /** Counts a job for the turns of the accounts, and remembers which one has its conversation. */
  recordJob(cli: ModelCli, { client, sessionId, circuit }: AccountJob): void {
    if (this.#named.size === 0) return;
    const id = sessionId();
    if (id !== null) setNewest(this.#lastTurns, id, cli.label, maxConversations);
    const eligible = this.#eligible(cli, client);
    if (this.#isShared && eligible.length > 1) this.#turnsOf(eligible).countJob(cli, this.#weightOf(cli, circuit));
  }

  #turnsOf(eligible: readonly ModelCli[]): AccountTurns<ModelCli> {
    const key = eligible.map(({ label }) => label).join(' ');
    const turns = this.#turns.get(key) ?? new AccountTurns();
    setNewest(this.#turns, key, turns, maxGroups);
    return turns;
  }

  #weightOf({ health }: Pick<ModelCli, 'health'>, circuit: string): number {
    return weightOf(health.windows.current, circuit, this.#parts.host.clock.now());
  }

  mayServe(cli: ModelCli, client: ClientText): boolean {
    return this.#eligible(cli, client).includes(cli);
  }

  #startNew(): void {
    for (const cli of this.clis) if (!this.#started.has(cli)) this.#startCli(cli);
  }

  #eligible(cli: ModelCli, client: ClientText): readonly ModelCli[] {
    const keyAccounts = this.#accountsOf(client);
    const accounts = this.clis.filter(({ name }) => name === cli.name);
    if (this.#named.size + this.#closed.length === 0 && keyAccounts === null) return accounts;
    const isElsewhere = (name: string) => {
      const named = this.#named.get(name);
      return named !== undefined && named.cli.name !== cli.name;
    };
    const closed = this.#closed.filter((each) => this.#mayBeOf(each, cli)).map((account) => ({ account }));
    const eligible = eligibleAccounts(client, [...accounts, ...closed], keyAccounts, isElsewhere);
    return eligible.filter((each) => each instanceof ModelCli);
  }

  /** Whether a closed account may be one of this CLI: its line names the name or the kind of the CLI, or no CLI of the service. */
  #mayBeOf({ cli: named }: ClosedAccount, { name, adapter }: ModelCli): boolean {
    const isCli = (cli: ModelCli) => named === cli.name || named === cli.adapter.name;
    return named === name || named === adapter.name || !this.#serviceClis.some(isCli);
  }

  /** Adds the former owners of a closed account, and its former HOME, which stays hidden. */
  #withOldParts(closed: ClosedAccount): ClosedAccount {
    const before = this.#named.get(closed.name)?.prepared;
    const older = this.#closed.find(({ name }) => name === closed.name);
    const owners = [...closed.owners, ...(before?.line.owners ?? []), ...(older?.owners ?? [])];
    const homes = [...closed.homes, ...(before?.realHome ? [before.realHome] : []), ...(older?.homes ?? [])];
    return { ...closed, owners: [...new Set(owners)], homes: [...new Set(homes)] };
  }

  #instanceOf(prepared: PreparedAccount, before: ReadonlyMap<string, NamedAccount>): NamedAccount {
    const known = before.get(prepared.line.name);
    if (known !== undefined && hasSameLogin(known.prepared, prepared)) {
      known.cli.account = prepared.line;
      return { prepared, cli: known.cli };
    }
    const former = [...before.values(), ...this.#retired].find((each) => hasSameLogin(each.prepared, prepared));
    return { prepared, cli: this.#create(prepared, former?.cli.loginKey ?? {}) };
  }

  /** Returns where the logins are that other accounts must not read. */
  #placesOf(accounts: readonly PreparedAccount[]): LoginPlace[] {
    if (accounts.length + this.#closed.length === 0) return [];
    const openHomes = accounts.flatMap(({ realHome }) => realHome ?? []);
    const homes = new Set([...openHomes, ...this.#closed.flatMap((closed) => closed.homes)]);
    const files = this.#serviceClis.flatMap(({ adapter: { login } }) => login?.path ?? []);
    const placesAt = (paths: Iterable<string>, isOfService: boolean) =>
      [...paths].map((path) => ({ path, isOfService }));
    return [...placesAt(homes, false), ...placesAt(files, true)];
  }

  #create(
    { line, realHome, cli: name, adapter, env, cliEnv, token, findFault }: PreparedAccount,
    loginKey: object,
  ): ModelCli {
    const { config, host, names, serials, context } = this.#parts;
    const { pool } = this.#serviceClis.find((each) => each.name === name) ?? this.#serviceClis[0];
    const program = this.#programs.get(name) ?? sharedProgram(adapter, host, pool);
    this.#programs.set(name, program);
    const accountConfig = { ...config, cliEnv, oauthToken: token };
    const accountHost = { ...host, env, log: accountLog(host.log, line.name) };
    const account = { account: line, loginKey, home: realHome, program, findFault };
    return new ModelCli(accountConfig, accountHost, { name, adapter }, names, serials, context, account);
  }

  /** Starts a CLI. Accounts are started one after another, because each check and each renewal starts the program. */
  #startCli(cli: ModelCli): void {
    this.#started.add(cli);
    if (cli.account.name === null) startChecks(cli);
    else
      this.#checked = this.#checked.then(() => {
        if (!this.#started.has(cli)) return; // it was removed
        startChecks(cli);
        return cli.health.checks.runCheck('start'); // joins the check that has just begun
      });
    cli.standby.startStandby();
  }
}

/** Returns warnings about logins that are not hidden from the processes of other accounts. */
export function isolationWarnings(
  first: readonly PreparedAccount[],
  host: Pick<CliHost, 'fence'>,
  clis: readonly Pick<ModelCli, 'name'>[],
): string[] {
  if (first.length === 0) return [];
  const fence = fenceOf(host);
  if (fence === null)
    return [
      'MODEL_API_ACCOUNTS_FILE: the processes of one account can read the login of another, because this host has no Landlock (Linux 5.19) or no perl (docs/accounts.md).',
    ];
  const isShared = ({ name }: Pick<ModelCli, 'name'>) =>
    !first.some(({ cli, line: { owners } }) => cli === name && owners.length === 0);
  const around = first.filter(({ realHome }) => realHome !== null && fence.isInServiceHome(realHome));
  if (around.length === 0 || !clis.some(isShared)) return [];
  const names = around.map(({ line }) => line.name).join(', ');
  return [
    `MODEL_API_ACCOUNTS_FILE: the HOME of the service is around that of ${names}, so jobs with the login of the service can read it (docs/accounts.md).`,
  ];
}

/** Returns warnings about accounts with an owner that is no API key, perhaps because of a misspelled name. */
export function ownerWarnings(
  accounts: readonly Pick<ModelCli, 'account'>[],
  keyClients: readonly ClientText[],
): string[] {
  const known = new Set(keyClients);
  const isUnknown = (owner: ClientText) => isKey(owner) && !known.has(optionHolder(owner));
  return accounts.flatMap(({ account }) => {
    const unknown = account.owners.filter(isUnknown);
    const names = unknown.map((owner) => readClientId(owner).name).join(', ');
    const text = `MODEL_API_ACCOUNTS_FILE: no API key has the name of an owner of ${account.name}: ${names}`;
    return unknown.length === 0 ? [] : [text];
  });
}

function isKey(owner: ClientText): boolean {
  const { kind } = readClientId(owner);
  return kind === 'key' || kind === 'made';
}

function fenceOf({ fence }: Pick<CliHost, 'fence'>): LoginFence | null {
  return fence instanceof LoginFence ? fence : null;
}

function hasSameLogin(a: PreparedAccount, b: PreparedAccount): boolean {
  const isSamePlace = a.env.HOME === b.env.HOME && a.line.tokenFile === b.line.tokenFile;
  return a.cli === b.cli && isSamePlace && a.token === b.token;
}

/** Returns a log that names the account in each record. */
function accountLog(log: Logger, account: string): Logger {
  return {
    debug: (event, fields) => log.debug(event, { ...fields, account }),
    info: (event, fields) => log.info(event, { ...fields, account }),
    warn: (event, fields) => log.warn(event, { ...fields, account }),
    error: (event, fields) => log.error(event, { ...fields, account }),
    flush: () => log.flush(),
  };
}

/**
 * Applies the accounts of a changed file. An account whose line has a fault serves nobody. A half-written file changes
 * nothing. `onChange` gets the removed accounts.
 */
export function accountsListener(
  accounts: CliAccounts,
  { path, first, prepare }: AccountsSource,
  { onChange, fileFaults }: Pick<LoginsParts, 'onChange' | 'fileFaults'>,
  log: AccountLogger,
): FileListener {
  let known = signatureOf(first);
  const report = (faults: readonly string[], modifiedAt: number | null) => {
    if (fileFaults.replace('accounts', faults, modifiedAt) && faults.length > 0)
      log.error('accounts_rejected', { error: shownFaults(faults) });
  };
  return {
    read: async (text, modifiedAt = null) => {
      const prepared = await prepare(text);
      const { faults, isCutOff } = prepared;
      const signature = isCutOff ? known : signatureOf(prepared);
      const hasChanged = signature !== known;
      if (hasChanged) {
        const before = accounts.named;
        accounts.replace(prepared);
        onChange(before.filter((cli) => !accounts.named.includes(cli)));
      }
      const isRepaired = faults.length === 0 && fileFaults.countOf('accounts') > 0;
      report(faults, isCutOff ? null : modifiedAt);
      if (hasChanged || isRepaired) log.info('accounts_loaded', { accounts: prepared.accounts.length });
      known = signature;
      return faults.length === 0;
    },
    unreadable: (error) => report([fileFault(path, error)], null),
  };
}

/** Creates the watch of the accounts file and its files with tokens, which is not started yet. */
export function watchAccountsFile(
  accounts: CliAccounts,
  source: AccountsSource,
  parts: Pick<LoginsParts, 'onChange' | 'fileFaults'>,
  { clock, log }: Pick<CliHost, 'clock'> & { readonly log: AccountLogger },
): WatchedFile {
  const listener = accountsListener(accounts, source, parts, log);
  let tokenFiles: readonly string[] = [];
  const read = async () => {
    const text = await source.read();
    tokenFiles = readAccountsFile(text).accounts.flatMap(({ tokenFile }) => tokenFile ?? []);
    return text;
  };
  return new WatchedFile(source.path, listener, clock, read, () => tokenFiles);
}

/** Returns a text that differs if anything of the accounts does, except comments. */
function signatureOf({ accounts, closed }: PreparedAccounts): string {
  const open = accounts.map(({ line: { line: _, ...account }, env, token }) => [account, env.HOME, token]);
  return JSON.stringify([open, closed.map(({ name, cli, owners, homes }) => [name, cli, owners, homes])]);
}
