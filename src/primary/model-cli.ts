import type { Config } from '../shared/config/config.js';
import { ProcessScanner } from '../shared/proc/process-scanner.js';
import type { Adapter } from './cli/adapter.js';
import { CliLauncher } from './cli/cli-launcher.js';
import type { CliObserver } from './cli/cli-observer.js';
import { CliProgram } from './cli/cli-program.js';
import { launchEnv } from './cli/launch-env.js';
import { chooseKind, createAdapter } from './cli/registry.js';
import { Shelf, type ShelfObserver } from './cli/shelf.js';
import { warningsOf } from './host/warnings.js';
import type { World } from './host/world.js';
import { type ModelChoice, modelChoice } from './model-choice.js';

export interface AdapterChoice {
  readonly adapter: Adapter;
  /** What whoever starts the service should know: of the configuration, and of what was made of it. */
  readonly warnings: readonly string[];
}

/** The parts that speak with the model CLI. */
export interface ModelCli extends AdapterChoice {
  readonly program: CliProgram;
  readonly launcher: CliLauncher;
  readonly shelf: Shelf;
  readonly models: ModelChoice;
}

/** `isCalm` tells whether a process may be started in advance now. */
export function createModelCli(
  config: Config,
  world: World,
  choice: AdapterChoice,
  observer: CliObserver & ShelfObserver,
  isCalm: () => boolean,
): ModelCli {
  const { adapter } = choice;
  const models = modelChoice(config, adapter);
  const launcher = createLauncher(config, world, adapter, observer);
  const consult = (path: string, args: readonly string[], input?: string) => launcher.consult(path, args, input);
  const program = new CliProgram(adapter, world.searchPath, consult);
  const usual = { model: models.fallback, system: null };
  const shelf = new Shelf(
    { perLaunch: config.standby, usual },
    { maxSessions: config.liveSessions, idleMs: config.sessionIdleMs },
    { program, launcher, clock: world.clock, observer, isCalm },
  );
  return { ...choice, launcher, program, shelf, models };
}

export async function chooseAdapter(config: Config, world: World): Promise<AdapterChoice> {
  const kind = await chooseKind(config, world.searchPath);
  return { adapter: createAdapter(kind, config), warnings: warningsOf(config, world.tools, kind) };
}

function createLauncher(config: Config, world: World, adapter: Adapter, observer: CliObserver): CliLauncher {
  const { clock, log, tools, instance, runtimeDirectory } = world;
  const credential = { variable: adapter.credentialVariable, value: config.oauthToken };
  const { maxOutputBytes, killGraceMs: graceMs, firstOutputMs, stallMs } = config;
  const settings = {
    instance,
    runtimeDirectory,
    env: { ...adapter.env, ...launchEnv(world.env, config.cliEnv, credential) },
    limits: { maxOutputBytes, graceMs, firstOutputMs, stallMs },
  };
  return new CliLauncher(settings, { clock, log, tools, observer, scanner: new ProcessScanner(clock) });
}
