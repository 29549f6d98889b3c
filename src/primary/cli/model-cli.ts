import type { Clock } from '../../shared/clock.js';
import type { Config, Environment } from '../../shared/config/config.js';
import type { Logger } from '../../shared/logger.js';
import { orAborted } from '../../shared/or-aborted.js';
import type { Instance } from '../../shared/process/instance.js';
import type { Redactor } from '../../shared/redactor.js';
import { coalesced } from '../../shared/shared-calls.js';
import { type Adapter, type Launch, plainLaunch } from './contract/adapter.js';
import type { CliObserver } from './contract/observer.js';
import { launchEnv } from './environment.js';
import type { NamedAdapter } from './models.js';
import { LaunchHistory } from './pool/launch-history.js';
import type { CliLease } from './pool/lease.js';
import { ProcessPool } from './pool/process-pool.js';
import type { ConversationState } from './process/cli-state.js';
import { Launcher, type Serials } from './process/launcher.js';
import { CliProgram, type KnownProgram, type Verdict } from './process/program.js';
import type { Termination } from './terminate/termination.js';

/** The parts of the service that deal with one model CLI. Models are named as it names them. */
export interface ModelCli {
  readonly name: string;
  readonly adapter: Adapter;
  readonly history: LaunchHistory;
  readonly pool: ProcessPool;
  readonly program: CliProgram;
  /** What runs for a request that asks for nothing. */
  readonly commandLine: () => readonly string[];
  /** As `program.check`; rejects also where a process could be given no folder now. */
  readonly check: () => Promise<Verdict>;
  /** As `program.find`: a look at the file serves all who ask in one turn of the event loop. */
  readonly findProgram: () => Promise<KnownProgram>;
  /** A CLI process for a launch and its conversation, where there is one. Rejects with `spawn_error` or the signal's reason. */
  readonly acquire: (launch: Launch, of: ConversationState | null, signal: AbortSignal) => Promise<CliLease>;
}

/** What they need of the host. */
export interface CliHost {
  readonly env: Environment;
  readonly instance: Instance;
  readonly termination: Termination;
  /** A folder of the service's own, mode 0700. */
  readonly runtimeDirectory: string;
  readonly workDirectory: string;
  /** Folders in which programs are looked for, as PATH names them. */
  readonly searchPath: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What one CLI is told beside its configuration. */
export interface CliContext {
  readonly observer: CliObserver;
  readonly redactor: Redactor;
  /** The model of a request that names none. */
  readonly usualModel: string | null;
  /** Counts the processes of all CLIs. */
  readonly serials: Serials;
}

export function createModelCli(
  config: Config,
  host: CliHost,
  { name, adapter }: NamedAdapter,
  { observer, redactor, usualModel, serials }: CliContext,
): ModelCli {
  const { clock, searchPath } = host;
  const hasUsual = usualModel !== null || adapter.needsModel !== true;
  const history = new LaunchHistory(hasUsual ? plainLaunch(usualModel) : null);
  const launcher = createLauncher(config, host, adapter, observer, serials);
  const { maxOutputBytes, killGraceMs: graceMs, firstOutputMs, stallMs } = config;
  const limits = { maxOutputBytes, graceMs, firstOutputMs, stallMs };
  const settings = { maxSessions: config.liveSessions, idleMs: config.sessionIdleMs, limits };
  const pool = new ProcessPool(settings, { launcher, history, clock, observer, redactor });
  const program = new CliProgram(adapter, searchPath, (...asked) => pool.consult(...asked));
  const findProgram = coalesced(() => program.find());
  return {
    name,
    adapter,
    history,
    pool,
    program,
    commandLine: () => program.commandLine(plainLaunch(usualModel)),
    check: async () => {
      const verdict = await program.check();
      await launcher.tryPlace(adapter.command[0]);
      return { ...verdict, error: verdict.error === null ? null : redactor.redact(verdict.error) };
    },
    findProgram,
    acquire: async (launch, of, signal) => pool.acquire(await orAborted(findProgram(), signal), launch, of, signal),
  };
}

function createLauncher(
  config: Config,
  host: CliHost,
  adapter: Adapter,
  observer: CliObserver,
  serials: Serials,
): Launcher {
  const { instance, runtimeDirectory, workDirectory, termination, clock, log } = host;
  const credential = { variable: adapter.credentialVariable, value: config.oauthToken };
  const env = { ...adapter.env, ...launchEnv(host.env, config.cliEnv, credential) };
  const context = { killTree: termination.killTree, clock, log, observer };
  const settings = { instance, serials, runtimeDirectory, workDirectory, env, home: adapter.home ?? null };
  return new Launcher(settings, termination.containments, context);
}
