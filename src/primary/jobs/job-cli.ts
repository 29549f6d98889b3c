import type { CliLease } from '../cli/pool/process-pool.js';
import type { CliProcess } from '../cli/process/cli-process.js';

/** CLI process as a job uses it. */
export interface JobCli extends Pick<CliLease, 'turn' | 'usage' | 'release' | 'extras' | 'origin' | 'heldMs'> {
  readonly process: Pick<CliProcess, 'startedMs' | 'startupMs' | 'isReusable' | 'state'>;
}
