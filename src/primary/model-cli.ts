import type { Config } from '../shared/config/config.js';
import { ProcessScanner } from '../shared/proc/process-scanner.js';
import type { Adapter } from './cli/adapter.js';
import { CliLauncher } from './cli/cli-launcher.js';
import { CliProgram } from './cli/cli-program.js';
import { launchEnv } from './cli/launch-env.js';
import { chooseKind, createAdapter } from './cli/registry.js';
import type { ModelChoice } from './job-runner.js';
import type { World } from './world.js';

/** The parts that speak with the model CLI. */
export interface ModelCli {
  readonly adapter: Adapter;
  readonly program: CliProgram;
  readonly launcher: CliLauncher;
  readonly models: ModelChoice;
}

export async function createModelCli(config: Config, world: World): Promise<ModelCli> {
  const adapter = createAdapter(await chooseKind(config, world.searchPath), config);
  const launcher = createLauncher(config, world, adapter);
  const consult = (path: string, args: readonly string[], input?: string) => launcher.consult(path, args, input);
  const program = new CliProgram(adapter, world.searchPath, consult);
  return { adapter, launcher, program, models: modelChoice(config, adapter) };
}

function createLauncher(config: Config, world: World, adapter: Adapter): CliLauncher {
  const { clock, log, tools, instance, runtimeDirectory } = world;
  const credential = { variable: adapter.credentialVariable, value: config.oauthToken };
  const settings = {
    instance,
    runtimeDirectory,
    env: { ...adapter.env, ...launchEnv(world.env, config.cliEnv, credential) },
    limits: { maxOutputBytes: config.maxOutputBytes, graceMs: config.killGraceMs },
  };
  return new CliLauncher(settings, { clock, log, tools, scanner: new ProcessScanner(clock) });
}

function modelChoice(config: Config, adapter: Adapter): ModelChoice {
  return {
    fallback: config.defaultModel,
    allowed: config.allowedModels.length > 0 ? config.allowedModels : adapter.models,
    label: config.defaultModel ?? adapter.models?.[0] ?? null,
  };
}
