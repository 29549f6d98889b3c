import type { Request } from 'express';
import type { ModelEntry } from '../../shared/api/models.js';
import type { JobView } from '../../shared/background.js';
import type { Clock } from '../../shared/clock.js';
import type { RequestFields, SharedFeature } from '../../shared/features/feature.js';
import type { Calls, Peer } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';
import type { JobRequest } from '../../shared/job.js';
import type { PeerCredentials } from '../../shared/node-internals/peer-credentials.js';
import type { Authority, UserSource } from '../access/authenticate.js';
import type { RouteGuards } from '../access/guards.js';
import type { OwnJobs } from '../access/own-jobs.js';
import type { PersonSource } from '../access/people.js';
import type { AnswerRecorder } from '../http/answer-recorder.js';
import type { ErrorForm, Handler, Reply, RequestTracer } from '../http/exchange.js';
import type { JobOfRequest, LeaveJob } from '../jobs/admission.js';
import type { JobInspector } from '../jobs/documents.js';
import type { ReadReferences } from '../jobs/file-references.js';
import type { OfflineRoutes } from '../jobs/offline-routes.js';
import type { JobParts } from '../jobs/run-job.js';

/** Parts of a worker that features may use. */
export interface WorkerCore<C extends Calls = Calls> {
  /** Sends the feature's calls to the primary. */
  readonly primary: Pick<Peer<C, WorkerCalls>, 'call' | 'stream'>;
  readonly authority: Authority;
  readonly users: Pick<UserSource, 'admitProxy'>;
  /** Knows the users at the other ends of Unix sockets. */
  readonly credentials: Pick<PeerCredentials, 'uidOf'>;
  /** Knows the connections of programs that jobs of this service run. */
  readonly ownJobs: Pick<OwnJobs, 'isOf'>;
  readonly guards: RouteGuards;
  readonly clock: Clock;
  /** Logs an unexpected error, which ends no request. */
  readonly onFault: (fault: unknown) => void;
  /** Options of keys of all features, in the bodies of requests. */
  readonly keyFields: RequestFields;
  /** Signal that is aborted when this worker is about to exit. */
  readonly closing: AbortSignal;
  /** Dependencies of routes that run jobs. Use it only in requests: not all features exist before. */
  readonly jobs: JobParts;
}

/** Steps that answer each method of a route. */
export interface RouteSteps {
  readonly get?: readonly Handler[];
  readonly post?: readonly Handler[];
  readonly patch?: readonly Handler[];
  readonly delete?: readonly Handler[];
}

/** Route of a feature. */
export interface FeatureRoute extends RouteSteps {
  /** Template, which names the route in the metrics. */
  readonly route: `/${string}`;
  /** Paths for Express; by default, that of the template. */
  readonly paths?: readonly (string | RegExp)[];
  /** Steps before those of each method. */
  readonly before?: readonly Handler[];
}

/** API of other programs, at paths and with errors that these programs expect. */
export interface Door {
  /** Returns the form of errors of a request; null if the request is not for this API. */
  errorFormOf(req: Pick<Request, 'path' | 'headers'>): ErrorForm | null;
  /**
   * Returns the path at which the routes answer a request; null if the request is not for this API. `path`: the path
   * from the URL that a user has entered, without slashes at both ends.
   */
  findPath?(path: string, req: Pick<Request, 'headers'>): `/${string}` | null;
  /** Header of all answers that repeats the id of the request. */
  readonly requestIdHeader?: string;
  /** Form of models at /v1/models. */
  readonly models?: ModelForms;
  /** Resources below /v1 that only this API has, so that headers of other APIs have no meaning there. */
  readonly resources?: ReadonlySet<string>;
  /** Resources below /v1 that this API has, and this service does not. */
  readonly absent?: ReadonlySet<string>;
  /** Answer to unknown paths below a path. */
  readonly unknown?: { readonly below: `/${string}`; readonly answer: Handler };
  /** Additional port for programs that only know the port of their service. */
  readonly port?: DoorPort;
}

/** Facts about the service that its lists of models contain. */
export interface ModelsContext {
  /** First start of the service, milliseconds since the epoch: the date of a model whose name has none. */
  readonly firstStartMs: number;
  /** What clients can do with each model because of a feature. */
  readonly modelAbilities: readonly string[];
}

/** Bodies about models. A list begins with the default model, and has one page. */
interface ModelForms {
  /** Parameters of the list that have no effect, and are not reported as ignored. */
  readonly knownQuery?: ReadonlySet<string>;
  list(models: readonly ModelEntry[], context: ModelsContext): object;
  one(model: ModelEntry, context: ModelsContext): object;
  /** Returns fields that GET /models has in addition, because a base URL without /v1 leads there. */
  nativeFields?(models: readonly ModelEntry[], context: ModelsContext): object;
}

interface DoorPort {
  readonly name: string;
  /** Answers GET / at this port. */
  readonly root: Handler;
}

/** Part of a feature in a worker. */
export interface WorkerPart {
  readonly routes: readonly FeatureRoute[];
  /** API to which all routes belong. */
  readonly door?: Door;
  /** Handlers of the calls of the feature from the primary. */
  readonly handlers?: Readonly<Record<string, (request: never) => unknown>>;
  /** Identifies people. A worker has at most one such source. */
  readonly people?: PersonSource;
  /** Names clients without a key. Without a feature that has this, they are addresses. */
  readonly users?: UserSource;
  /** Answers or passes on requests of pages of other sites. Without a feature that has this, each is refused. */
  readonly foreignPages?: Handler;
  /** Traces the requests of the worker. */
  readonly tracer?: RequestTracer;
  /** Inspects the documents of requests. Without a feature that has this, each document is refused. */
  readonly documents?: JobInspector;
  /** Routes of its API whose requests need not come over HTTP. */
  readonly offlineRoutes?: OfflineRoutes;
  /** Reads the files to which requests refer. */
  readonly readFiles?: ReadReferences;
  /** Accepts jobs that continue without their requests. Without a feature that has this, each request waits for its answer. */
  readonly leaveJob?: LeaveJob;
  /**
   * Returns fields to add to the form of a background job. No other feature may use their names. Throws
   * `validation_error` if the request must be refused.
   */
  admitJob?(job: JobOfRequest): Readonly<Record<string, unknown>>;
  /**
   * Returns the recorder of the answer to a request that runs a model; null if the feature does not record it. Throws
   * `validation_error` if the request must be refused.
   */
  recorderOf?(req: Request, res: Reply): AnswerRecorder | null;
  /** Returns fields to add to the request of a job. Throws `validation_error` if the request must be refused. */
  annotateJob?(job: JobOfRequest): Partial<JobRequest>;
  /** Returns fields to add to the answer of GET /jobs/{job_id}. */
  jobFields?(job: Pick<JobView, 'client' | 'requestId'>): Promise<Readonly<Record<string, unknown>>>;
  /** Called when all requests have ended, before the worker exits. Never throws. */
  stop?(): void;
}

/** Code of a feature for a worker. */
export interface WorkerModule<C extends Calls = Calls> {
  createPart(core: WorkerCore<C>): WorkerPart | Promise<WorkerPart>;
}

/** Feature as a worker sees it. */
export interface WorkerFeature<C extends Calls = Calls> extends SharedFeature {
  readonly calls: C;
  /** Loads the code for a worker. */
  loadWorker(): Promise<WorkerModule<C>>;
}
