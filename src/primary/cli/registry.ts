import { join } from 'node:path';
import { commandModel } from '../../shared/config/command-model.js';
import type { Config } from '../../shared/config/config.js';
import type { Adapter } from './adapter.js';
import { claudeAdapter } from './adapters/claude.js';
import { commandAdapter } from './adapters/command.js';
import { demoAdapter } from './adapters/demo.js';
import { findProgram } from './find-program.js';

export type AdapterKind = Exclude<Config['cli'], 'auto'>;

const demoProgram = join(__dirname, '..', '..', 'demo', 'main.js');

/**
 * `auto` is claude where it can be started, else the demo model; but neither a production host nor who has named a
 * program gets the demo unasked.
 */
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
