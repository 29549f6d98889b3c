import { basename, join } from 'node:path';
import { commandModel } from '../../shared/config/command-model.js';
import type { Config, Environment } from '../../shared/config/config.js';
import type { Adapter } from './adapter.js';
import { claudeAdapter } from './adapters/claude.js';
import { commandAdapter } from './adapters/command.js';
import { demoAdapter } from './adapters/demo.js';
import { launchEnv, searchPathOf } from './environment.js';
import { findProgram } from './program.js';

export type AdapterKind = Exclude<Config['cli'], 'auto'>;

export interface AdapterChoice {
  readonly adapter: Adapter;
  /** What the operator should know about the choice. */
  readonly warnings: readonly string[];
}

const demoProgram = join(__dirname, '..', '..', 'demo', 'main.js');
const demoWarning = 'no claude on PATH: the demo model answers. Install claude, or set MODEL_API_CLI.';

/** `env` is the service's own. */
export async function chooseAdapter(config: Config, env: Environment): Promise<AdapterChoice> {
  const kind = await chooseKind(config, searchPathOf(env));
  return { adapter: createAdapter(kind, config, env), warnings: config.cli === 'auto' ? warningsOf(kind, config) : [] };
}

/** `auto` is claude, or the demo where it can't be started; on a production host, or with a named program, never. */
export async function chooseKind(config: Config, searchPath: string): Promise<AdapterKind> {
  if (config.cli !== 'auto') return config.cli;
  if (config.production || config.cliCommand !== null) return 'claude';
  const found = await findProgram('claude', searchPath);
  return found.kind === 'found' ? 'claude' : 'demo';
}

/** The only place that knows adapters by name. */
export function createAdapter(kind: AdapterKind, config: Config, env: Environment): Adapter {
  const extraArgs = config.cliArgs;
  switch (kind) {
    case 'claude': {
      const given = launchEnv(env, config.cliEnv, { variable: null, value: null });
      const hasToken = config.oauthToken !== null;
      return claudeAdapter(config.cliCommand ?? ['claude'], { extraArgs, given, hasToken });
    }
    case 'command': {
      const command = config.cliCommand ?? [''];
      return commandAdapter(command, { extraArgs, ...commandModel(command, extraArgs, config.defaultModel) });
    }
    case 'demo':
      return demoAdapter(config.cliCommand ?? [process.execPath, demoProgram]);
  }
}

function warningsOf(kind: AdapterKind, { cliCommand }: Config): string[] {
  if (kind === 'demo') return [demoWarning];
  const [program = 'claude'] = cliCommand ?? [];
  const isNamedOtherwise = !basename(program).includes('claude');
  return isNamedOtherwise
    ? [`${basename(program)} is taken for claude: for any other program set MODEL_API_CLI=command.`]
    : [];
}
