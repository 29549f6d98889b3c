import type { Clock } from '../../../shared/clock.js';
import type { CliFamily } from '../../../shared/config/clis.js';
import type { Config, Environment } from '../../../shared/config/config.js';
import type { Adapter } from './adapter.js';

/** Model CLI of the service. */
export interface CliChoice {
  /** Name in logs and metrics, and before the names of its models. */
  readonly name: string;
  readonly kind: string;
  /** Program and its leading arguments; null for the default of its kind. */
  readonly command: readonly [program: string, ...args: string[]] | null;
}

/** Settings for the adapter of a service, or of an account. */
interface AdapterSettings {
  readonly config: Config;
  readonly env: Environment;
  /** Environment variables that the program inherits from the service. */
  readonly givenVariables: Readonly<Record<string, string>>;
  readonly clock: Clock;
}

export type CreateCliAdapter = (choice: CliChoice, settings: AdapterSettings) => Adapter | Promise<Adapter>;

/** Kinds of model CLIs that belong together, as the primary sees them. */
export interface AdapterFamily extends CliFamily {
  /** Loads the code of the adapters. Each costs about 1 MB of memory, so it is called only for kinds in use. */
  loadAdapters(): CreateCliAdapter;
  /** Kind that answers if claude is not installed, except on a production host, and the warning about it. */
  readonly standIn?: { readonly kind: string; readonly warning: string };
  /** Kind for programs that no other adapter knows. */
  readonly anyProgram?: string;
}
