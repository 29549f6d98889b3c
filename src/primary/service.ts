import type { Clock } from '../shared/clock.js';
import type { Config, Environment } from '../shared/config/config.js';
import type { Instance } from '../shared/cookie.js';
import type { JobEnd, JobRequest } from '../shared/job.js';
import { describeError, type Logger } from '../shared/logger.js';
import { ProcessScanner } from '../shared/proc/process-scanner.js';
import { apiHandlers } from './api.js';
import type { Adapter } from './cli/adapter.js';
import { CliLauncher } from './cli/cli-launcher.js';
import { CliProgram } from './cli/cli-program.js';
import { launchEnv } from './cli/launch-env.js';
import type { HostTools } from './cli/process-tree.js';
import { chooseKind, createAdapter } from './cli/registry.js';
import { doorSettings } from './door-settings.js';
import { Fleet } from './fleet.js';
import { type JobObserver, JobRunner, type ModelChoice } from './job-runner.js';
import { SlotQueue } from './slot-queue.js';
import { Status } from './status.js';
import { Supervisor } from './supervisor.js';

/** What the service is given of the world. */
export interface World {
  readonly env: Environment;
  readonly product: { readonly version: string; readonly commit: string | null };
  readonly instance: Instance;
  readonly tools: HostTools;
  readonly runtimeDirectory: string;
  readonly searchPath: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** A port of this host that nobody listens at; 0 where none can be had. */
  freePort(host: string): Promise<number>;
  /** Gives a Unix socket that is being listened on its mode. */
  openSocket(path: string): Promise<void>;
  exit(code: number): void;
}

const exitUnavailable = 69;
const maxWaitingBytes = 64 * 1024 * 1024;

/** Builds the parts and ties them together; nothing runs before `start`. */
export async function compose(config: Config, world: World) {
  const { clock, log, product } = world;
  const adapter = createAdapter(await chooseKind(config, world.searchPath), config);
  const port = config.port === 0 ? await world.freePort(config.host) : config.port;
  const launcher = createLauncher(config, world, adapter);
  const program = new CliProgram(adapter, world.searchPath, (path, args) => launcher.consult(path, args));
  const slots = new SlotQueue({ maxActive: config.maxConcurrent, maxWaiting: config.maxQueue, maxWaitingBytes }, clock);
  const tally = new Tally(log);
  const runner = new JobRunner(
    slots,
    (launch, signal) => launcher.start(program, launch, signal),
    modelChoice(config, adapter),
    { queueTimeoutMs: config.queueTimeoutMs, executionMs: config.executionMs },
    tally,
    clock,
  );
  const status = new Status(clock);
  const handlers = apiHandlers({
    phase: () => supervisor.phase,
    doorSettings: () => doorSettings(config, port, supervisor.phase),
    run: (request, caller) => runner.run(request, caller),
    health: () => status.health(supervisor.phase, slots, tally.queueTimeouts, fleet),
    version: () => status.version(product, { adapter: adapter.name, version: program.version }),
  });
  const fleet = new Fleet(config.workers, handlers, fleetEvents(), clock, log);
  const supervisor = new Supervisor(
    {
      announce: (phase) => fleet.tell(phase),
      idle: () => slots.idle(),
      counts: () => ({ running: slots.active, queued: slots.waiting }),
      cutAll: (reason) => runner.cutAll(reason),
      stopWorkers: () => fleet.stop(),
    },
    config.drainMs,
    clock,
    log,
    world.exit,
  );

  function fleetEvents() {
    return {
      listening: ({ host, port }: { host: string; port: number }) => {
        if (port < 0) return void world.openSocket(host);
        if (supervisor.becomeReady()) log.info('service_ready', { host, port });
      },
      unavailable: (reason: string) => {
        log.error('workers_unavailable', { reason });
        void supervisor.fail(exitUnavailable);
      },
    };
  }

  function start(workerProgram: string): void {
    for (const warning of config.warnings) log.warn('config_warning', { warning });
    if (config.cli === 'auto' && adapter.name === 'demo') log.warn('config_warning', { warning: demoWarning });
    log.info('service_start', { version: product.version, adapter: adapter.name, workers: config.workers });
    fleet.start(workerProgram);
    void program.find().catch(() => {}); // inspected ahead of the first job; a fault shows there
  }

  return { supervisor, start };
}

const demoWarning = 'no claude on PATH: the demo model answers. Install claude, or set MODEL_API_CLI.';

function createLauncher(config: Config, world: World, adapter: Adapter): CliLauncher {
  const credential = { variable: adapter.credentialVariable, value: config.oauthToken };
  const settings = {
    instance: world.instance,
    runtimeDirectory: world.runtimeDirectory,
    env: launchEnv(world.env, config.cliEnv, credential),
    limits: { maxOutputBytes: config.maxOutputBytes, graceMs: config.killGraceMs },
  };
  const { clock, log, tools } = world;
  return new CliLauncher(settings, { clock, log, tools, scanner: new ProcessScanner(clock) });
}

function modelChoice(config: Config, adapter: Adapter): ModelChoice {
  return {
    fallback: config.defaultModel,
    allowed: config.allowedModels.length > 0 ? config.allowedModels : adapter.models,
    label: config.defaultModel ?? adapter.models?.[0] ?? null,
  };
}

/** Owns the figures of jobs that have ended, until a registry of metrics takes them over. */
class Tally implements JobObserver {
  readonly #log: Logger;
  queueTimeouts = 0;

  constructor(log: Logger) {
    this.#log = log;
  }

  jobEnded(_request: JobRequest, end: JobEnd): void {
    if (end.outcome === 'queue_timeout') this.queueTimeouts++;
  }

  jobBroke(thrown: unknown): void {
    this.#log.error('internal_error', { error: describeError(thrown) });
  }
}
