import type { LogStyle } from '../../shared/log/style.js';
import type { ServiceExit } from '../../shared/phase.js';
import type { TracePlaces } from '../../shared/process/leftovers.js';
import type { CliHost } from '../cli/model-cli.js';
import type { Systemd } from './systemd.js';

/** What the service is given of the world outside. */
export interface Host extends CliHost {
  readonly product: { readonly version: string; readonly commit: string | null };
  readonly systemd: Systemd;
  /** Where the service leaves traces, should it be killed. */
  readonly traces: TracePlaces;
  /** How the log is written, here and by the workers. */
  readonly logStyle: LogStyle;
  /** Writes lines between those of a log for people; elsewhere nothing. */
  show(lines: readonly string[]): void;
  /** Called for each piece of work. Gives memory back to the system in the next quiet. */
  readonly heap: { touch(): void };
  /** Log records of the primary that could not be written. */
  logWriteErrors(): number;
  /** Memory that can be had without swapping, bytes. */
  freeMemory(): number;
  /** Numbers from 0 to 1. */
  random(): number;
  exit(code: ServiceExit): void;
}
