import { z } from 'zod';
import type { ConfiguredFeature, FeaturePort, FeatureVariables } from '../config/feature-variables.js';
import { featureOption, fieldsOf } from '../config/key-option-table.js';
import type { PublicCode } from '../errors.js';
import type { Calls } from '../ipc/peer.js';
import { type PrimaryCalls, primaryCalls, type WorkerCalls, workerCalls } from '../ipc/protocol.js';
import type { MetricTable } from '../tables/metrics.js';

/** Fields of a request body. */
export type RequestFields = Readonly<Record<string, z.ZodType>>;

/** HTTP endpoint of a feature, with its description for the documents. */
export interface FeatureEndpoint {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path with the names of its parameters in braces. */
  readonly route: `/${string}`;
  /** Error codes in addition to the common ones. */
  readonly errors: readonly PublicCode[];
  /** Status of a success; 200 by default. */
  readonly success?: 200 | 201;
  /** Descriptions of other statuses that are not errors and have no body. */
  readonly others?: Readonly<Record<number, string>>;
  /** Descriptions of statuses that are errors only in this API. */
  readonly otherErrors?: Readonly<Record<number, string>>;
  /** Name of the operation in generated clients. */
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** Descriptions of the parameters in the path. */
  readonly params?: Readonly<Record<string, string>>;
  /** Parameters in the query. */
  readonly query?: Readonly<Record<string, z.ZodType>>;
  readonly body?: { readonly schema: z.ZodType; readonly example: object };
  /** Body in the form `multipart/form-data`. */
  readonly form?: z.ZodType;
  /** Whether requests are refused if no API key is configured. */
  readonly alwaysNeedsKey?: true;
  /** Whether no request needs an API key. */
  readonly isOpen?: true;
  /** Whether a request runs a model: the answer can be a stream, and a repeated request can get the first answer. */
  readonly runsModel?: true;
  /** Whether the answer can be a stream although the request runs no model. */
  readonly isStreamed?: true;
  /** Whether the job of a request can run in the background, with `Prefer: respond-async`. */
  readonly runsInBackground?: true;
  /** Description of the header by which a repeated request gets the first answer, for a request that runs no model. */
  readonly onceText?: string;
  /** Schema of the answer; the media type of one that is no JSON. */
  readonly answer: z.ZodType | string;
  readonly answerText: string;
  /** Another media type that clients can request. */
  readonly alsoAs?: string;
}

/** API of other programs that a feature offers, for the documents. */
export interface DoorDescription {
  /** Title of the section in the OpenAPI document that has the endpoints. */
  readonly section: string;
  readonly endpoints: readonly FeatureEndpoint[];
  /** Body of errors. */
  readonly error: z.ZodType;
  /** Answer that is a stream. */
  readonly stream: { readonly mediaType: string; readonly schema: z.ZodType };
  /** Bodies of this API at /v1/models. */
  readonly shared?: {
    readonly model: z.ZodType;
    readonly models: z.ZodType;
    /** Fields that GET /models has in addition. */
    readonly nativeModels?: RequestFields;
  };
}

/** Endpoints of a feature at paths of the APIs of others, for the documents. */
export interface EndpointsOfApi {
  /** Route of the API whose errors these endpoints have; null if they have the errors of any. */
  readonly formOf: `/${string}` | null;
  readonly endpoints: readonly FeatureEndpoint[];
}

/** Everything about a feature that both processes and the documents read. Reading it has no effect. */
export interface SharedFeature<V extends FeatureVariables = FeatureVariables> extends ConfiguredFeature<V> {
  readonly name: string;
  /** Names of the earlier features that the feature imports. */
  readonly needs?: readonly string[];
  /** Calls from the workers to the primary. */
  readonly calls: Calls;
  /** Calls from the primary to workers. */
  readonly workerCalls?: Calls;
  /** Routes that accept tools. */
  readonly toolRoutes?: readonly `/${string}`[];
  readonly endpoints: readonly FeatureEndpoint[];
  /** Returns the endpoints with the options of keys and the ports of all features in their bodies, for the documents. */
  readonly endpointsWith?: (fields: KeyFields, ports: readonly FeaturePort[]) => readonly FeatureEndpoint[];
  /** Loads and returns the description of an API of other programs, which only the documents need. */
  readonly describeDoor?: () => DoorDescription;
  /** Loads and returns the endpoints at paths of the APIs of others, which only the documents need. */
  readonly describeRoutes?: () => readonly EndpointsOfApi[];
  /** Fields that POST /ask and POST /chat accept in addition. */
  readonly requestFields: RequestFields;
  /** Metrics by name without the prefix. */
  readonly metrics?: MetricTable;
  /** Values of `event` in the log, and their meanings. */
  readonly logEvents: Readonly<Record<string, string>>;
}

/** Returns the calls from workers to the primary, including the calls of features. */
export function primaryCallsWith(features: readonly Pick<SharedFeature, 'calls'>[]): PrimaryCalls {
  return Object.assign({}, ...features.map(({ calls }) => calls), primaryCalls) as PrimaryCalls;
}

/** Returns the calls from the primary to workers, including the calls of features. */
export function workerCallsWith(features: readonly Pick<SharedFeature, 'workerCalls'>[]): WorkerCalls {
  return Object.assign({}, ...features.map((feature) => feature.workerCalls), workerCalls) as WorkerCalls;
}

type WithDoorNames = Pick<SharedFeature, 'toolRoutes'>;

/** Routes whose requests may offer tools. The metrics of these routes exist from the start of the service. */
export type DoorNames = Required<WithDoorNames>;

/** Returns the routes with tools of all features. */
export function doorNamesOf(features: readonly WithDoorNames[]): DoorNames {
  return { toolRoutes: features.flatMap(({ toolRoutes = [] }) => toolRoutes) };
}

/** Returns the fields that all features add to POST /ask and POST /chat. */
export function requestFieldsOf(features: readonly Pick<SharedFeature, 'requestFields'>[]): RequestFields {
  return Object.assign({}, ...features.map(({ requestFields }) => requestFields)) as RequestFields;
}

/** Fields for a client's tools. */
const toolFields = ['tools', 'tool_choice', 'functions', 'function_call'];

/** Returns the fields that POST /ask and POST /chat refuse because only other routes accept them. */
export function refusedFieldsOf(features: readonly WithDoorNames[]): RequestFields {
  const routes = doorNamesOf(features).toolRoutes.map((route) => `POST ${route}`);
  if (routes.length === 0) return {};
  const refused = z.never(`is only accepted by ${routes.join(', ')}`).optional();
  return Object.fromEntries(toolFields.map((name) => [name, refused]));
}

/** Options of keys in the bodies of requests and of answers. */
export type KeyFields = Readonly<Record<'body' | 'view', RequestFields>>;

/** Returns the options of all features that requests about keys can set. */
export function keyFieldsOf(features: readonly Pick<SharedFeature, 'keyOptions'>[]): KeyFields {
  const named = features.flatMap(({ keyOptions }) => Object.entries(keyOptions));
  const options = named.map(([name, option]) => [name, featureOption(name, option)] as const);
  return { body: fieldsOf(options, 'body'), view: fieldsOf(options, 'view') };
}

/** Returns the schema of a body with further fields. */
export function withFields<T>(schema: z.ZodObject & z.ZodType<T>, fields: RequestFields): z.ZodType<T> {
  return schema.safeExtend(fields) as z.ZodType as z.ZodType<T>;
}
