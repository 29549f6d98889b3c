import type { Clock } from '../../shared/clock.js';
import type { Environment } from '../../shared/config/config.js';
import type { ServiceExit } from '../../shared/exit-codes.js';
import type { Instance } from '../../shared/instance.js';
import type { Logger } from '../../shared/logger.js';
import type { HostTools } from '../cli/process-tree.js';
import type { Systemd } from './systemd.js';

/** What the service is given of the world outside. */
export interface World {
  readonly env: Environment;
  readonly product: { readonly version: string; readonly commit: string | null };
  readonly instance: Instance;
  readonly tools: HostTools;
  readonly systemd: Systemd;
  /** A folder of the service's own, mode 0700. */
  readonly runtimeDirectory: string;
  /** Folders in which programs are looked for, as PATH names them: the model CLI, and tools of the host. */
  readonly searchPath: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Log records of the primary that could not be written. */
  logWriteErrors(): number;
  /** Memory that can be had without swapping, bytes. */
  freeMemory(): number;
  /** Numbers from 0 to 1. */
  random(): number;
  /** Gives a Unix socket that is being listened on its mode. */
  openSocket(path: string): Promise<void>;
  exit(code: ServiceExit): void;
}
