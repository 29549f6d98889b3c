import { basename } from 'node:path';
import type { Config } from '../../shared/config/config.js';
import type { HostTools } from '../cli/process-tree.js';

const demoWarning = 'no claude on PATH: the demo model answers. Install claude, or set MODEL_API_CLI.';
const setprivWarning =
  'no setpriv on PATH that knows --pdeathsig (util-linux has one from 2.33 on): ' +
  'if the service is killed, what it leaves running may live on until the next start.';

/** What could be better here, in words; the service can start all the same. */
export function warningsOf(config: Config, tools: HostTools, adapterName: string): string[] {
  const isDemoByItself = config.cli === 'auto' && adapterName === 'demo';
  const [program] = config.cliCommand ?? [];
  const isTakenForClaude = config.cli === 'auto' && program !== undefined && !basename(program).includes('claude');
  return [
    ...config.warnings,
    ...(isDemoByItself ? [demoWarning] : []),
    ...(isTakenForClaude
      ? [`${basename(program)} is taken for claude: for any other program set MODEL_API_CLI=command.`]
      : []),
    ...(tools.setpriv === null ? [setprivWarning] : []),
  ];
}
