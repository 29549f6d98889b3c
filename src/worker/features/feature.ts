import type { Request } from 'express';
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

/** Request for a job, as features see it. */
export interface JobOfRequest {
  readonly req: Pick<Request, 'headers' | 'headersDistinct'>;
  /** Values of the fields of features, in a body of the native API. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Whether the job continues without its request. */
  readonly isBackground: boolean;
}

/** Part of a feature in a worker. */
export interface WorkerPart {
  readonly routes: readonly FeatureRoute[];
  /**
   * Returns fields to add to the form of a background job. No other feature may use their names. Throws
   * `validation_error` if the request must be refused.
   */
  admitJob?(job: JobOfRequest): Readonly<Record<string, unknown>>;
}

/** Code of a feature for a worker. */
interface WorkerModule<C extends Calls = Calls> {
  createPart(core: WorkerCore<C>): WorkerPart;
}

/** Feature as a worker sees it. */
export interface WorkerFeature<C extends Calls = Calls> extends SharedFeature {
  readonly calls: C;
  /** Loads the code for a worker. */
  loadWorker(): Promise<WorkerModule<C>>;
}
