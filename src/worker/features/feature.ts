import type { SharedFeature } from '../../shared/features/feature.js';
import type { Calls, Peer } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';
import type { Authority } from '../access/authenticate.js';
import type { Handler } from '../http/exchange.js';

/** Parts of a worker that features may use. */
export interface WorkerCore<C extends Calls = Calls> {
  /** Makes the calls of the feature. */
  readonly primary: Pick<Peer<C, WorkerCalls>, 'call'>;
  readonly authority: Authority;
}

/** Route of a feature, with the steps that answer GET. */
export interface FeatureRoute {
  readonly route: `/${string}`;
  readonly get: readonly Handler[];
}

/** What one feature does in a worker. */
export interface WorkerPart {
  readonly routes: readonly FeatureRoute[];
}

/** Code of a feature for a worker. */
export interface WorkerModule<C extends Calls = Calls> {
  createPart(core: WorkerCore<C>): WorkerPart;
}

/** Feature as a worker sees it. */
export interface WorkerFeature<C extends Calls = Calls> extends SharedFeature {
  readonly calls: C;
  /** Loads the code for a worker. */
  loadWorker(): Promise<WorkerModule<C>>;
}
