import type { ClientText } from '../../shared/client.js';
import type { KeyOptions } from '../../shared/config/api-keys.js';
import type { Config, Environment } from '../../shared/config/config.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import type { FileFaults } from '../access/file-faults.js';
import type { Adapter } from './contract/adapter.js';
import type { CliContext, CliHost, ModelCli } from './model-cli.js';
import type { AtLeastOne, NamedAdapter } from './models.js';
import type { Fence } from './process/fence.js';
import type { Serials } from './process/launcher.js';
import type { Secret } from './process/redactor.js';
import type { AccountChooser, ModelNames } from './route.js';

/** Part of a feature that adds logins to the model CLIs, as accounts with names. */
export interface LoginProvider<V extends FeatureVariables = FeatureVariables> {
  /** Rejects with a ConfigFault if a service on this host could not keep the logins apart. */
  checkHost(values: ValuesOf<V>): Promise<void>;
  /** Creates what hides the logins from each other; resolves with null if this host cannot, or if there is only one. */
  createFence(values: ValuesOf<V>, searchPath: string, env: Environment): Promise<Fence | null>;
  /** Reads the logins. Rejects with a ConfigFault. */
  open(values: ValuesOf<V>, settings: LoginSettings): Promise<LoginSource>;
}

/** Facts about the service that decide how a login is used. */
export interface LoginSettings {
  readonly config: Config;
  readonly env: Environment;
  readonly clis: AtLeastOne<NamedAdapter>;
  /** Creates the adapter of the CLI with this name for another configuration and environment. */
  readonly create: (name: string, config: Config, env: Environment) => Promise<Adapter>;
}

/** Logins at the start of the service. */
export interface LoginSource {
  /** Faults of lines, which the service refuses. */
  readonly lineFaults: readonly string[];
  /** Returns that the CLI has no account of this name, as the end of a sentence; null if it has one. */
  findFault(cli: string, account: string): string | null;
  /** Returns warnings about logins that the programs of others can read. */
  warnings(host: Pick<CliHost, 'fence'>, clis: readonly Pick<ModelCli, 'name'>[]): string[];
  create(serviceClis: AtLeastOne<ModelCli>, parts: LoginsParts): Logins;
}

/** Parts that the logins of a service use. */
export interface LoginsParts {
  readonly config: Config;
  readonly host: CliHost;
  readonly names: ModelNames;
  readonly serials: Serials;
  readonly context: CliContext;
  readonly fileFaults: FileFaults;
  /** Returns the texts of the options of features that a client has. */
  featureOptionsOf(client: ClientText): KeyOptions['featureOptions'];
  /** Called when the logins have changed, with those that were removed. */
  onChange(removed: readonly ModelCli[]): void;
}

/** Logins of all model CLIs. */
export interface Logins extends AccountChooser<ModelCli> {
  /** The logins in use, in the order of the CLIs. The array changes in place, so that every part sees the present ones. */
  readonly clis: AtLeastOne<ModelCli>;
  /** All logins with processes: those in use, the unused ones of the service, and removed ones. */
  readonly all: readonly ModelCli[];
  /** Logins of the service that others replace. */
  readonly unused: readonly ModelCli[];
  /** Tokens of the logins. */
  readonly secrets: readonly Secret[];
  /** Returns the login that lists the models of a CLI and shows its version. */
  firstOf(cli: ModelCli): ModelCli;
  /** Returns warnings about owners that are no clients. `keyClients`: the clients of all API keys. */
  warnings(keyClients: readonly string[]): string[];
  /** Starts the checks and the renewals of all logins in use. */
  startChecks(): void;
  /** Checks all logins in use at the request of an operator. */
  checkAll(): Promise<void>;
  /** Reads changed logins at the request of an operator. */
  reread(): Promise<void>;
  /** Whether the login may serve this client at present. */
  mayServe(cli: ModelCli, client: ClientText): boolean;
}

/** Creates the logins of all model CLIs. Without a source, each has only that of the service. */
export function createLogins(
  source: LoginSource | null,
  serviceClis: AtLeastOne<ModelCli>,
  parts: LoginsParts,
): Logins {
  return source?.create(serviceClis, parts) ?? new ServiceLogins(serviceClis);
}

/** Owns the logins of a service whose CLIs have one each. */
class ServiceLogins implements Logins {
  readonly variable = '';
  readonly clis: AtLeastOne<ModelCli>;
  readonly unused = [];
  readonly secrets = [];

  constructor(clis: AtLeastOne<ModelCli>) {
    this.clis = clis;
  }

  get all(): readonly ModelCli[] {
    return this.clis;
  }

  firstOf(cli: ModelCli): ModelCli {
    return cli;
  }

  warnings(): string[] {
    return [];
  }

  startChecks(): void {
    for (const cli of this.clis) {
      startChecks(cli);
      cli.standby.startStandby();
    }
  }

  async checkAll(): Promise<void> {
    await Promise.all(this.clis.map(({ health }) => health.forceCheck()));
  }

  async reread(): Promise<void> {}

  choose(cli: ModelCli) {
    return { cli };
  }

  mayServe(): boolean {
    return true;
  }
}

export function startChecks({ health, login }: ModelCli): void {
  health.checks.startChecks();
  login?.startRenewals();
}
