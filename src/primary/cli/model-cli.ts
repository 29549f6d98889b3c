import { coalesced, orAborted } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Config, Environment } from '../../shared/config/config.js';
import type { LoginNames, ReadinessEntry, ReadinessTrigger, Verdict } from '../../shared/health.js';
import { isolated } from '../../shared/isolated.js';
import { describeError, type Logger } from '../../shared/log/logger.js';
import type { Instance } from '../../shared/process/proc.js';
import { loginLabel } from '../../shared/text/format.js';
import type { CircuitStatus } from '../health/circuit.js';
import { CliHealth } from '../health/cli-health.js';
import type { SeenClients } from '../health/evidence.js';
import { type Adapter, type LaunchOptions, plainLaunch, type QuotaWindow } from './contract/adapter.js';
import { type CliObserver, noObserver } from './contract/observer.js';
import { LoginKeeper } from './login/login-keeper.js';
import type { AtLeastOne, NamedAdapter } from './models.js';
import { type CliLease, type PoolSettings, ProcessPool } from './pool/process-pool.js';
import { HostLoad, StandbyKeeper, type WaitingJob } from './pool/standby-keeper.js';
import { LaunchHistory } from './pool/standby-policy.js';
import type { ConversationState } from './process/cli-process.js';
import type { Fence } from './process/fence.js';
import { Launcher, launchEnv, type Serials } from './process/launcher.js';
import { CliProgram, type ConsultProgram, type KnownProgram } from './process/program.js';
import type { Redactor } from './process/redactor.js';
import type { Tenant } from './process/renewal.js';
import type { ModelNames } from './route.js';
import type { Termination } from './terminate/termination.js';

/** Resources of the host that all CLIs share. */
export interface CliHost {
  readonly env: Environment;
  readonly instance: Instance;
  readonly termination: Termination;
  /** Hides logins from programs that do not need them; missing if the host cannot, or if no login needs it. */
  readonly fence?: Fence;
  /** Private folder of the service, mode 0700. */
  readonly runtimeDirectory: string;
  readonly workDirectory: string;
  /** Folders to search for programs, in the format of PATH. */
  readonly searchPath: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns a random number from 0 to 1. */
  readonly random: () => number;
  /** Returns the bytes that are available without swapping. */
  readonly freeMemory: () => number;
}

/** Dependencies of the CLIs beside configuration and host. */
export interface CliContext {
  readonly observerOf: (cli: Pick<ModelCli, 'names'>) => CliObserver;
  readonly onChecked: (entry: ReadinessEntry) => void;
  /** Called when the circuit of an account or of a model changes. */
  readonly onCircuit: (status: CircuitStatus) => void;
  /** Returns the jobs of this CLI that are next to get a slot. */
  readonly waitingJobs: (cli: ModelCli) => readonly WaitingJob[];
  /** Returns the ids of conversations that waiting jobs will continue. */
  readonly awaited: () => ReadonlySet<string>;
  /** Whether the service accepts jobs. */
  readonly isReady: () => boolean;
  readonly redactor: Redactor;
  readonly clients: SeenClients;
}

/** Time after its last job for which an account has processes on standby and regular checks. */
const inUseMs = 10 * 60_000;

/** Login of a model CLI. */
export interface Account {
  /** Null for the login of the service. */
  readonly name: string | null;
  /** Clients that it serves, such as `key ada`; if empty, it serves clients without an account. */
  readonly owners: readonly ClientText[];
  /** Maximum number of running jobs; null if only the slots and the CLI limit them. */
  readonly maxRunning: number | null;
  /** Whether it serves only while the others that a client may use cannot. */
  readonly isSpare: boolean;
}

export const serviceLogin: Account = { name: null, owners: [], maxRunning: null, isSpare: false };

/** Account of an instance of a model CLI, which shares what the service knows about the program. */
export interface AccountPart {
  readonly account: Account;
  /** See `ModelCli`. */
  readonly loginKey: object;
  /** Its HOME without symbolic links; null if it has none. */
  readonly home: string | null;
  readonly program: CliProgram;
  /** Returns why the login cannot be used, before the program is asked; null if nothing is known. */
  readonly findFault: () => Promise<string | null>;
}

/**
 * Owns the parts of one model CLI, or of one account of it. The models have the names that the adapter uses.
 */
export class ModelCli implements NamedAdapter {
  readonly name: string;
  readonly adapter: Adapter;
  /** Its owners and its limit may change, but not its name. */
  account: Account;
  /** The same for all instances with one login. An account that was removed for a time has another instance afterwards. */
  readonly loginKey: object;
  /** Renews the login; null unless the login is in files and the program renews it. */
  readonly login: LoginKeeper | null;
  readonly history: LaunchHistory;
  readonly pool: ProcessPool;
  readonly program: CliProgram;
  readonly health: CliHealth;
  readonly standby: StandbyKeeper;
  readonly #names: ModelNames;
  readonly #context: CliContext;
  /** Launch of a request that names no model. */
  readonly #defaultLaunch: LaunchOptions;
  readonly #launcher: Launcher;
  /** Finds the program. Calls in one turn of the event loop share a check of the file. */
  readonly #findProgram: () => Promise<KnownProgram>;
  readonly #clock: Clock;
  readonly #findAccountFault: AccountPart['findFault'];
  /** When a job last started, in milliseconds since the epoch; null if none has. */
  #lastUsedAt: number | null = null;
  #lastUsedMs = Number.NEGATIVE_INFINITY;
  #jobs = 0;
  /** Whether jobs may use this login. Accounts without owners replace the login of the service. */
  isServing = true;

  constructor(
    config: Config,
    host: CliHost,
    named: NamedAdapter,
    names: ModelNames,
    serials: Serials,
    context: CliContext,
    part: AccountPart | null = null,
  ) {
    const { name, adapter } = named;
    const { redactor, awaited } = context;
    const { clock, log } = host;
    const { callbacks } = adapter;
    this.name = name;
    this.adapter = adapter;
    this.account = part?.account ?? serviceLogin;
    this.loginKey = part?.loginKey ?? {};
    this.#findAccountFault = part?.findFault ?? (async () => null);
    this.#clock = clock;
    this.#names = names;
    this.#context = context;
    const { model, circuit } = name === names.defaultRoute.cli.name ? names.defaultRoute : { model: null, circuit: '' };
    this.#defaultLaunch = plainLaunch(model);
    const quotaReported = (windows: readonly QuotaWindow[]) => this.#recordQuota(windows);
    const report = (thrown: unknown) => log.error('internal_error', { error: describeError(thrown) });
    const observer = isolated({ ...context.observerOf(this), quotaReported }, report);
    const renew = (isDone: Promise<void>) => this.#renewLogin(isDone);
    this.login = adapter.login === undefined ? null : new LoginKeeper(adapter.login, { cli: name, clock, log, renew });
    const launcher = createLauncher(config, host, adapter, observer, serials, this.login, part);
    this.#launcher = launcher;
    const history = new LaunchHistory(model === null && adapter.needsModel ? null : this.#defaultLaunch);
    this.history = history;
    const onChange = () => this.#updateStandby();
    const load = new HostLoad(clock, host.freeMemory);
    const hasMemory = () => load.hasMemory;
    const poolParts = { launcher, history, clock, observer, redactor, callbacks, awaited, hasMemory, onChange };
    const pool = new ProcessPool(poolSettings(config), poolParts);
    this.pool = pool;
    this.program = part?.program ?? new CliProgram(adapter, host.searchPath, (...query) => pool.consult(...query));
    this.#findProgram = coalesced(() => this.program.findProgram());
    this.health = this.#createHealth(config, host, circuit);
    const findProgram = this.#findProgram;
    const waitingJobs = () => context.waitingJobs(this);
    const isReady = () => this.#isReady;
    const isInUse = () => this.isInUse;
    const standbyParts = { pool, history, load, clock, findProgram, waitingJobs, isReady, isInUse };
    this.standby = new StandbyKeeper(config.standby, standbyParts);
  }

  #createHealth(config: Config, { clock, log, random }: CliHost, defaultCircuit: string): CliHealth {
    const { clients, onChecked, onCircuit } = this.#context;
    const { readinessIntervalMs: intervalMs, historyLimit } = config;
    const publicName = (model: string | null) => this.publicName(model);
    const probe = (trigger: ReadinessTrigger) => this.#probe(trigger);
    const onSpoiled = () => void this.pool.endIdleProcesses();
    const settings = {
      ...{ names: this.names, adapter: this.adapter.name, intervalMs, historyLimit, defaultCircuit },
      isInUse: () => this.isInUse,
    };
    const parts = { clock, log, random, clients, publicName, onChecked, onCircuit, probe, onSpoiled };
    return new CliHealth(settings, parts);
  }

  /** Returns the public name of a model; '' and null stand for the CLI's default. */
  publicName(model: string | null): string | null {
    return this.#names.publicName(this, model);
  }

  get names(): LoginNames {
    const { name: account } = this.account;
    return { cli: this.name, ...(account !== null && { account }) };
  }

  /** Name of the CLI and its account, such as `claude@team`. */
  get label(): string {
    return loginLabel(this.name, this.account.name);
  }

  /** Whether processes are worth while at rest: for accounts in use, and for the login of the service if it serves. */
  get isInUse(): boolean {
    if (this.account.name === null) return this.isServing;
    return this.#jobs > 0 || this.#clock.monotonicMs() - this.#lastUsedMs < inUseMs;
  }

  /** When a job last started, in milliseconds since the epoch; null if none has. */
  get lastUsedAt(): number | null {
    return this.#lastUsedAt;
  }

  /** Number of its waiting and running jobs. */
  get jobs(): number {
    return this.#jobs;
  }

  /** Counts a job from its admission until the result is disposed. */
  countJob(): Disposable {
    this.#jobs++;
    return { [Symbol.dispose]: () => void this.#jobs-- };
  }

  /** Stops all that runs without a job, after the account was removed. Jobs that have it can still finish. */
  async retire(): Promise<void> {
    this.health.stopChecks();
    this.standby.stopStandby();
    this.login?.stopRenewals();
    this.pool.keepsNoSessions = true;
    await this.pool.endIdleProcesses();
  }

  /** Returns the models that the program lists with this login; null if it has no list. */
  listModels(): ReturnType<CliProgram['listModels']> {
    return this.program.listModels((...query) => this.pool.consult(...query));
  }

  /** Returns the command line of a default request. */
  commandLine(): readonly string[] {
    return this.program.commandLine(this.#defaultLaunch);
  }

  /**
   * Returns a CLI process for a launch, and for a conversation if there is one. Rejects with `spawn_error` or the
   * signal's reason. `tenant`: null if no process may be renewed for the client.
   */
  async acquire(
    launch: LaunchOptions,
    conversation: ConversationState | null,
    signal: AbortSignal,
    tenant: Tenant | null = null,
  ): Promise<CliLease> {
    this.#lastUsedMs = this.#clock.monotonicMs();
    this.#lastUsedAt = this.#clock.now();
    const program = await orAborted(this.#findProgram(), signal);
    if (this.login?.isDue === true) await orAborted(this.login.ready(), signal);
    return this.pool.acquire(program, launch, conversation, signal, tenant);
  }

  /** Whether processes may be started in advance. */
  get #isReady(): boolean {
    return this.#context.isReady() && this.health.circuits.isClosed && this.login?.isDue !== true;
  }

  #recordQuota(windows: readonly QuotaWindow[]): void {
    this.health.recordQuota(windows);
  }

  #updateStandby(): void {
    this.standby.update();
  }

  async #renewLogin(isDone: Promise<void>): Promise<void> {
    await this.pool.renewLogin(await this.#findProgram(), this.adapter.login?.lock ?? '', isDone);
  }

  /** Checks whether the program can run jobs. Rejects if no folder for a process can be created. */
  async #probe(trigger: ReadinessTrigger): Promise<Verdict> {
    const fault = await this.#findAccountFault();
    if (fault !== null) return { version: this.program.version, error: fault };
    const consult: ConsultProgram = (...query) => this.pool.consult(...query);
    const verdict = await this.program.checkReadiness(trigger, async () => this.login?.findFault(), consult);
    await this.#launcher.tryPlace(this.adapter.command[0]);
    const { error } = verdict;
    return { ...verdict, error: error === null ? null : this.#context.redactor.redact(error) };
  }
}

/** Returns what all accounts of a CLI share. `pool`: of the login of the service, which runs the program to learn it. */
export function sharedProgram(adapter: Adapter, { searchPath }: CliHost, pool: ProcessPool): CliProgram {
  return new CliProgram(adapter, searchPath, (...query) => pool.consult(...query));
}

export function createModelClis(
  config: Config,
  host: CliHost,
  names: ModelNames,
  context: CliContext,
  serials: Serials = { last: 0 },
): AtLeastOne<ModelCli> {
  const create = (named: NamedAdapter) => new ModelCli(config, host, named, names, serials, context);
  const [first, ...others] = names.clis;
  return [create(first), ...others.map(create)];
}

/** Ends the live sessions of a conversation at all CLIs except `but`. */
export function forgetConversation(clis: readonly ModelCli[], id: string, but: ModelCli | null = null): void {
  for (const cli of clis) if (cli !== but) cli.pool.endSessionOf(id);
}

/** Prevents further starts. Resolves when all processes have ended and the ports are closed. */
export async function closeClis(
  clis: readonly ModelCli[],
  { termination }: Pick<CliHost, 'termination'>,
): Promise<void> {
  for (const { login } of clis) login?.stopRenewals();
  await Promise.all(clis.map(({ pool }) => pool.closePool()));
  await Promise.all(clis.map(({ adapter }) => adapter.callbacks?.closePort()));
  await termination.containments.close();
}

function poolSettings(config: Config): PoolSettings {
  const { maxOutputBytes, killGraceMs: graceMs, stallMs } = config;
  const limits = { maxOutputBytes, graceMs, stallMs };
  const mayRenew = config.reuse === 'on';
  return { maxSessions: config.liveSessions, idleMs: config.sessionIdleMs, mayRenew, limits };
}

/** Creates the launcher of programs that read files, which get none of the variables of model CLIs, and cannot open their logins. */
export function createReaderLauncher(host: CliHost, serials: Serials): Launcher {
  const { instance, runtimeDirectory, workDirectory, termination, fence, searchPath, clock, log } = host;
  const containments = fence?.aroundReader(termination.containments) ?? termination.containments;
  const settings = { instance, serials, runtimeDirectory, workDirectory, env: { PATH: searchPath }, home: null };
  const context = { killTree: termination.killTree, clock, log, observer: noObserver };
  return new Launcher(settings, containments, context);
}

function createLauncher(
  config: Config,
  host: CliHost,
  adapter: Adapter,
  observer: CliObserver,
  serials: Serials,
  login: LoginKeeper | null,
  part: AccountPart | null,
): Launcher {
  const { instance, runtimeDirectory, workDirectory, termination, fence, clock, log } = host;
  const credential = { variable: adapter.credentialVariable, value: config.oauthToken };
  const env = { ...adapter.env, ...launchEnv(host.env, config.cliEnv, credential) };
  const context = { killTree: termination.killTree, clock, log, observer, login };
  const settings = { instance, serials, runtimeDirectory, workDirectory, env, home: adapter.home ?? null };
  const containments = fence?.around(termination.containments, part) ?? termination.containments;
  return new Launcher(settings, containments, context);
}
