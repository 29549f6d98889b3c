import { basename, join } from 'node:path';
import { commandModel } from '../../shared/config/command-model.js';
import type { Config } from '../../shared/config/config.js';
import type { Adapter } from './adapter.js';
import { claudeAdapter } from './adapters/claude.js';
import { commandAdapter } from './adapters/command.js';
import { demoAdapter } from './adapters/demo.js';
import { findProgram } from './program.js';

export type AdapterKind = Exclude<Config['cli'], 'auto'>;

export interface AdapterChoice {
  readonly adapter: Adapter;
  /** What the operator should know about the choice. */
  readonly warnings: readonly string[];
}

const demoProgram = join(__dirname, '..', '..', 'demo', 'main.js');
const demoWarning = 'no claude on PATH: the demo model answers. Install claude, or set MODEL_API_CLI.';

export async function chooseAdapter(config: Config, searchPath: string): Promise<AdapterChoice> {
  const kind = await chooseKind(config, searchPath);
  return { adapter: createAdapter(kind, config), warnings: config.cli === 'auto' ? warningsOf(kind, config) : [] };
}

/** `auto` is claude, or the demo where it can't be started; on a production host, or with a named program, never. */
export async function chooseKind(config: Config, searchPath: string): Promise<AdapterKind> {
  if (config.cli !== 'auto') return config.cli;
  if (config.production || config.cliCommand !== null) return 'claude';
  const found = await findProgram('claude', searchPath);
  return found.kind === 'found' ? 'claude' : 'demo';
}

/** The only place that knows adapters by name. */
export function createAdapter(kind: AdapterKind, config: Config): Adapter {
  const extraArgs = config.cliArgs;
  switch (kind) {
    case 'claude':
      return claudeAdapter(config.cliCommand ?? ['claude'], { extraArgs });
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
