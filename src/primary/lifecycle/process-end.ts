import type { Clock } from '../../shared/clock.js';
import type { Logger } from '../../shared/log/logger.js';
import type { ServiceExit } from '../../shared/phase.js';
import { RuntimeFiles } from './runtime-files.js';

/** Owns the end of this process, by an exit or by a signal. Both remove the runtime files first. */
export class ProcessEnd {
  readonly files: RuntimeFiles;

  constructor(clock: Clock) {
    this.files = new RuntimeFiles(clock);
  }

  /** Exits after all records of the log are written. */
  async exit(code: ServiceExit, log: Pick<Logger, 'flush'>): Promise<void> {
    await this.files.removeFiles();
    if (await log.flush()) process.exit(code);
    process.kill(process.pid, 'SIGKILL'); // process.exit() would wait for a blocked write
  }

  /** Ends the process by a signal, because process.exit() would wait for a disk that does not respond. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    await this.files.removeFiles();
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }

  /**
   * Makes each exit end by SIGKILL after its other steps, because process.exit() would wait for a thread that waits for
   * its disk.
   */
  killOnExit(): void {
    process.once('exit', () => process.kill(process.pid, 'SIGKILL'));
  }
}
