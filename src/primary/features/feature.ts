import type { OperatorAct } from '../../shared/acts.js';
import type { JobForm } from '../../shared/background.js';
import type { Config } from '../../shared/config/config.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import type { SharedFeature } from '../../shared/features/feature.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import type { Logger } from '../../shared/log/logger.js';
import type { Budgets } from '../access/budgets.js';
import type { Clients } from '../access/clients.js';
import type { AdapterFamily } from '../cli/contract/adapter-family.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { Route } from '../cli/route.js';
import type { StoreProvider } from '../hosts/hosts.js';
import type { JobTrace } from '../jobs/job-trace.js';
import type { Host } from '../lifecycle/host.js';
import type { Store } from '../store/contract/store.js';
import type { StoreTable } from '../store/contract/tables.js';
import type { StoredKind } from './stored-kind.js';

/** Parts of the primary that features may use. All of them exist before the first job. */
export interface PrimaryCore {
  readonly host: Pick<Host, 'clock' | 'random' | 'product'> & { readonly log: Logger<string> };
  readonly store: Pick<Store, 'tables' | 'jobs'>;
  readonly clients: Pick<Clients, 'hasAccess' | 'optionsOf' | 'budgets'>;
  readonly budgets: Pick<Budgets, 'usesOf'>;
  readonly clis: readonly Pick<ModelCli, 'name' | 'accountName' | 'health'>[];
  readonly config: Config;
  /** Kinds of data that features store. Call it only after the start: not all features exist before. */
  readonly storedKinds: () => readonly StoredKind[];
}

/** Background job whose end is stored. */
export interface EndedBackgroundJob {
  readonly id: string;
  readonly request: Pick<JobRequest, 'client' | 'operation' | 'requestId'>;
  readonly form: JobForm;
  readonly end: JobEnd;
}

/** Hooks of a job, called in this order. */
interface JobHooks {
  /** Throws if the service must refuse this background job. */
  admit?(request: JobRequest, form: JobForm): void;
  /** Creates the observer of the steps of a job; returns null for a job that the feature does not trace. Never throws. */
  trace?(request: JobRequest, route: Route): JobTrace | null;
  /** Called once for each background job, when its end is stored. Never throws. */
  ended?(job: EndedBackgroundJob): void;
}

/** Counter that is read at each scrape: figures that never decrease, by the values of one label. */
export interface FeatureCounter {
  readonly name: string;
  readonly help: string;
  readonly label: string;
  read(): Readonly<Record<string, number>>;
}

/** Part of a feature in the primary. */
export interface PrimaryPart {
  readonly job?: JobHooks;
  /** Called before each act. Rejects if the act must be refused. */
  beforeAct?(act: OperatorAct): Promise<void>;
  /** Handlers of the calls of the feature. */
  readonly handlers: Readonly<Record<string, (request: never) => unknown>>;
  readonly counters?: readonly FeatureCounter[];
  /** Kinds of data that the feature stores. */
  readonly storedKinds?: readonly StoredKind[];
  /** Called when the state of the previous service has been restored. May be called again after a failure. */
  restored?(): Promise<void>;
  start?(): void;
  /** Resolves when the feature no longer uses the store. */
  stop?(): Promise<void>;
}

/** Creates the part of a feature in the primary. Nothing runs before `PrimaryPart.start`. */
export type CreatePrimaryPart = (core: PrimaryCore) => PrimaryPart;

/** Feature as the primary sees it. */
export interface PrimaryFeature<V extends FeatureVariables = FeatureVariables> extends SharedFeature<V> {
  /** Tables of the feature in the store. A name must never change, and never have another meaning: a store has old rows. */
  readonly tables: readonly StoreTable[];
  /** Model CLIs that the feature adds. */
  readonly clis?: AdapterFamily;
  /** Kind of stores that the feature adds. */
  readonly store?: StoreProvider;
  /** Loads the code that these values need. */
  loadPrimary(values: ValuesOf<V>): Promise<CreatePrimaryPart>;
}
