import { coalesced, orAborted } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import type { Config, Environment } from '../../shared/config/config.js';
import type { ReadinessEntry, ReadinessTrigger, Verdict } from '../../shared/health.js';
import type { Logger } from '../../shared/log/logger.js';
import type { Instance } from '../../shared/process/proc.js';
import type { CircuitStatus } from '../health/circuit.js';
import { CliHealth } from '../health/cli-health.js';
import type { SeenClients } from '../health/evidence.js';
import { type Adapter, type LaunchOptions, plainLaunch, type QuotaWindow } from './contract/adapter.js';
import type { CliObserver } from './contract/observer.js';
import { LoginKeeper } from './login/login-keeper.js';
import type { AtLeastOne, NamedAdapter } from './models.js';
import { type CliLease, type PoolSettings, ProcessPool } from './pool/process-pool.js';
import { HostLoad, StandbyKeeper, type WaitingJob } from './pool/standby-keeper.js';
import { LaunchHistory } from './pool/standby-policy.js';
import type { CallbackServer } from './process/callback-server.js';
import type { ConversationState } from './process/cli-process.js';
import { Launcher, launchEnv, type Serials } from './process/launcher.js';
import { CliProgram } from './process/program.js';
import type { Redactor } from './process/redactor.js';
import type { ModelNames } from './route.js';
import type { Termination } from './terminate/termination.js';

/** Model CLI of the service, with its parts. Its models have the names that its adapter uses. */
export interface ModelCli extends NamedAdapter {
  readonly history: LaunchHistory;
  readonly pool: ProcessPool;
  readonly standby: StandbyKeeper;
  readonly program: CliProgram;
  readonly health: CliHealth;
  /** Renews the login; null unless the login is in files and the program renews it. */
  readonly login: LoginKeeper | null;
  /** Returns the public name of a model; '' and null stand for the CLI's default. */
  readonly publicName: (model: string | null) => string | null;
  /** Returns the command line of a default request. */
  readonly commandLine: () => readonly string[];
  /**
   * Returns a CLI process for a launch, and for a conversation if there is one. Rejects with `spawn_error` or the
   * signal's reason.
   */
  readonly acquire: (launch: LaunchOptions, of: ConversationState | null, signal: AbortSignal) => Promise<CliLease>;
}

/** Resources of the host that all CLIs share. */
export interface CliHost {
  readonly env: Environment;
  readonly instance: Instance;
  readonly termination: Termination;
  readonly callbacks: CallbackServer;
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
  readonly observerOf: (cli: string) => CliObserver;
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

export function createModelClis(
  config: Config,
  host: CliHost,
  names: ModelNames,
  context: CliContext,
): AtLeastOne<ModelCli> {
  const serials = { last: 0 }; // shared by all CLIs
  const create = (named: NamedAdapter) => createModelCli(config, host, named, names, serials, context);
  const [first, ...others] = names.clis;
  return [create(first), ...others.map(create)];
}

/** Ends the live sessions of a conversation at all CLIs except `but`. */
export function forgetConversation(clis: readonly ModelCli[], id: string, but: ModelCli | null = null): void {
  for (const cli of clis) if (cli !== but) cli.pool.forget(id);
}

/** Prevents further starts. Resolves when all processes have ended and the ports are closed. */
export async function closeClis(
  clis: readonly ModelCli[],
  { termination, callbacks }: Pick<CliHost, 'termination' | 'callbacks'>,
): Promise<void> {
  for (const { login } of clis) login?.stop();
  await Promise.all(clis.map(({ pool }) => pool.close()));
  await callbacks.close();
  await termination.containments.close();
}

function createModelCli(
  config: Config,
  host: CliHost,
  named: NamedAdapter,
  names: ModelNames,
  serials: Serials,
  context: CliContext,
): ModelCli {
  const { name, adapter } = named;
  const { redactor, clients, onChecked, onCircuit, awaited } = context;
  const { clock, log, random, searchPath, callbacks } = host;
  const usual = named === names.usual.cli ? names.usual : { model: null, circuit: '' };
  const publicName = (model: string | null) => names.publicName(named, model);
  const observer = {
    ...context.observerOf(name),
    quotaReported: (windows: readonly QuotaWindow[]) => health.reported(windows),
  };
  const history = new LaunchHistory(usual.model === null && adapter.needsModel ? null : plainLaunch(usual.model));
  const renew = async (isDone: Promise<void>) => pool.renewLogin(await findProgram(), isDone);
  const login = adapter.login === undefined ? null : new LoginKeeper(adapter.login, { cli: name, clock, log, renew });
  const launcher = createLauncher(config, host, adapter, observer, serials, login);
  const onChange = () => standby.changed();
  const ofPool = { launcher, history, clock, observer, redactor, callbacks, awaited, onChange };
  const pool = new ProcessPool(poolSettings(config), ofPool);
  const program = new CliProgram(adapter, searchPath, (...asked) => pool.consult(...asked));
  const findProgram = coalesced(() => program.find()); // calls in one turn of the event loop share a check of the file
  const probe = async (trigger: ReadinessTrigger): Promise<Verdict> => {
    const verdict = await program.check(trigger, async () => login?.fault());
    await launcher.tryPlace(adapter.command[0]); // rejects if no folder can be created now
    return { ...verdict, error: verdict.error === null ? null : redactor.redact(verdict.error) };
  };
  const { readinessIntervalMs: intervalMs, historyLimit } = config;
  const health: CliHealth = new CliHealth(
    { cli: name, adapter: adapter.name, intervalMs, historyLimit, usual: usual.circuit },
    { clock, log, random, clients, publicName, onChecked, onCircuit, probe, onSpoiled: () => void pool.flush() },
  );
  const load = new HostLoad(clock, host.freeMemory);
  const isReady = () => context.isReady() && health.circuits.isClosed && login?.isDue !== true;
  const ofStandby = { pool, history, load, clock, findProgram, waitingJobs: () => context.waitingJobs(cli), isReady };
  const standby: StandbyKeeper = new StandbyKeeper(config.standby, ofStandby);
  const commandLine = () => program.commandLine(plainLaunch(usual.model));
  const acquire: ModelCli['acquire'] = async (launch, of, signal) => {
    const known = await orAborted(findProgram(), signal);
    await untilUsable(login, signal);
    return pool.acquire(known, launch, of, signal);
  };
  const parts = { history, pool, standby, program, health, login, publicName, commandLine, acquire };
  const cli: ModelCli = { name, adapter, ...parts };
  return cli;
}

function poolSettings(config: Config): PoolSettings {
  const { maxOutputBytes, killGraceMs: graceMs, firstOutputMs, stallMs } = config;
  const limits = { maxOutputBytes, graceMs, firstOutputMs, stallMs };
  return { maxSessions: config.liveSessions, idleMs: config.sessionIdleMs, limits };
}

/** Waits until a program may use the login; returns at once unless a renewal is due. */
async function untilUsable(login: LoginKeeper | null, signal: AbortSignal): Promise<void> {
  if (login?.isDue === true) await orAborted(login.ready(), signal);
}

function createLauncher(
  config: Config,
  host: CliHost,
  adapter: Adapter,
  observer: CliObserver,
  serials: Serials,
  login: LoginKeeper | null,
): Launcher {
  const { instance, runtimeDirectory, workDirectory, termination, clock, log } = host;
  const credential = { variable: adapter.credentialVariable, value: config.oauthToken };
  const env = { ...adapter.env, ...launchEnv(host.env, config.cliEnv, credential) };
  const context = { killTree: termination.killTree, clock, log, observer, login };
  const settings = { instance, serials, runtimeDirectory, workDirectory, env, home: adapter.home ?? null };
  return new Launcher(settings, termination.containments, context);
}
