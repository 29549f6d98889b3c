import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from 'zod-openapi';
import { requestHeaders } from '../src/features/idempotency/shared.js';
import { features } from '../src/features.js';
import { askRequest, askResult } from '../src/shared/api/ask.js';
import { chatRequest, chatResult } from '../src/shared/api/chat.js';
import { limitQuery } from '../src/shared/api/conversations.js';
import {
  brokenHttp,
  commonErrors,
  type Endpoint,
  type EndpointName,
  endpoints,
  nameOf,
  type RoutePath,
  sharedEndpoints,
} from '../src/shared/api/endpoints.js';
import { errorBody } from '../src/shared/api/error.js';
import { healthBody, historyBody, sinceQuery } from '../src/shared/api/health.js';
import {
  acceptedBody,
  allQuery,
  deletedJob,
  jobBody,
  jobCursorQuery,
  jobList,
  keepEndedQuery,
  lastEventId,
  statusQuery,
} from '../src/shared/api/jobs.js';
import { modelList } from '../src/shared/api/models.js';
import { statusChange } from '../src/shared/api/status.js';
import {
  backupRequest,
  purgeReport,
  purgeRequest,
  storeBackup,
  storeReport,
  verifyRequest,
} from '../src/shared/api/store.js';
import { versionBody } from '../src/shared/api/version.js';
import { storeFamiliesOf } from '../src/shared/config/stores.js';
import { httpStatusOf, type PublicCode } from '../src/shared/errors.js';
import {
  type DoorDescription,
  type EndpointsOfApi,
  type FeatureEndpoint,
  keyFieldsOf,
  requestFieldsOf,
  withFields,
} from '../src/shared/features/feature.js';

export type Operation = Pick<
  ZodOpenApiOperationObject,
  'summary' | 'description' | 'requestBody' | 'requestParams' | 'security'
> & {
  /** Name of the operation in generated clients. */
  readonly id: string;
  readonly ok: z.ZodType | string;
  readonly okText: string;
  /** Whether the answer of a job can be requested as a stream. */
  readonly isStreamed?: boolean;
  /** Alternative media type that clients can request. */
  readonly alsoAs?: string;
};

const jobId = { path: z.object({ job_id: z.string().meta({ description: 'Id of the job.' }) }) };
const prefer = z.string().meta({
  description:
    '`respond-async`: the response is a 202 at once, and the job runs in the background. `respond-async; followed`: the client follows the events of the job, which then ranks like a request that waits.',
});
const noFallback = z.enum(['0', '1']).meta({
  description: '`1`: only the requested model answers, and no fallback.',
});
const once = {
  header: z.object({ ...requestHeaders, 'X-No-Fallback': noFallback.optional() }),
};
const featureHeaders = Object.assign({}, ...features.map(({ requestHeaders }) => requestHeaders));
const featureFields = requestFieldsOf(features);
const preferring = {
  header: once.header.extend({ Prefer: prefer.optional(), ...featureHeaders }),
};
const idempotencyHeaders = {
  'Idempotency-Replayed': z.literal('true').optional().meta({
    description: 'Present if this is the stored answer to an earlier request with the same `Idempotency-Key`.',
  }),
  'Idempotency-Recorded': z.literal('false').optional().meta({
    description:
      'The answer to a request with an `Idempotency-Key` was not recorded. In a stream, a comment before the last event says so.',
  }),
};
const fallbackHeaders = {
  'X-Fallback': z.string().optional().meta({
    description:
      'Models that could not answer, and why, such as `claude/opus quota`. A stream that has begun before the fallback lacks it.',
  }),
};
/** APIs of other programs, and their bodies at the paths that they share. */
const doors = features.flatMap((feature) => feature.describeDoor?.() ?? []);
/** Endpoints at paths of the APIs of other features. */
const borrowed = features.flatMap((feature) => feature.describeRoutes?.() ?? []);
const sharingDoors = doors.filter(({ shared }) => shared !== undefined);
const sharedForms = sharingDoors.flatMap(({ shared }) => shared ?? []);
const nativeModels = Object.assign({}, ...sharedForms.map((forms) => forms.nativeModels));
const keyNeeded = [{ apiKey: [] }, { bearer: [] }];
const keyNeededIfConfigured = [...keyNeeded, {}];

/** Describes a JSON body. The documentation page sends the example by default. */
function json(schema: z.ZodType, example: object) {
  return { required: true, content: { 'application/json': { schema, example } } };
}

/** Sections of the document. */
const tags = [
  { name: 'The model', description: 'Prompts, conversations and jobs.' },
  { name: 'The service', description: 'State, figures and operation of the service.' },
  { name: 'For SDKs', description: 'The APIs of OpenAI and Anthropic, and the Model Context Protocol.' },
  { name: 'For Ollama’s clients', description: 'The API of Ollama.' },
  { name: 'This document', description: 'This document as text and as a page.' },
];

/** Section of the document for each route. */
const tagOf: Readonly<Record<RoutePath, string>> = {
  '/ask': 'The model',
  '/chat': 'The model',
  '/jobs': 'The model',
  '/jobs/{job_id}': 'The model',
  '/jobs/{job_id}/events': 'The model',
  '/models': 'The model',
  '/health': 'The service',
  '/health/history': 'The service',
  '/health/recheck': 'The service',
  '/store/backup': 'The service',
  '/store/verify': 'The service',
  '/store/purge': 'The service',
  '/metrics': 'The service',
  '/version': 'The service',
  '/v1/models': 'For SDKs',
  '/v1/models/{id}': 'For SDKs',
  '/openapi.yaml': 'This document',
  '/docs': 'This document',
};

/** Descriptions of the operations, in addition to the data in `endpoints`. */
const operations: Readonly<Record<EndpointName, Operation>> = {
  'POST /ask': {
    id: 'ask',
    summary: 'Send one prompt to the model',
    description:
      'One prompt and one answer; the service stores neither. The answer is JSON, or a stream of server-sent events if `stream` is true or the request accepts `text/event-stream`.',
    requestParams: preferring,
    requestBody: json(withFields(askRequest, featureFields).meta({ id: 'AskRequest' }), {
      prompt: 'Hello, my name is Ada',
    }),
    security: keyNeededIfConfigured,
    ok: askResult,
    okText: 'The answer.',
  },
  'POST /chat': {
    id: 'chat',
    summary: 'Start or continue a conversation',
    description:
      'A conversation belongs to the client that started it: an API key, otherwise a local user, otherwise an address.',
    requestParams: preferring,
    requestBody: json(withFields(chatRequest, featureFields).meta({ id: 'ChatRequest' }), {
      message: 'Hello, my name is Ada',
    }),
    security: keyNeededIfConfigured,
    ok: chatResult,
    okText: 'The answer, and the conversation with this turn in it.',
  },
  'GET /jobs': {
    id: 'listJobs',
    summary: 'List your jobs',
    description:
      'The waiting and running jobs of the caller, then the background jobs (`Prefer: respond-async`) of the caller; with `all`, the jobs of all clients. The list has no prompts and answers. If several hosts share a store, jobs that are not in the background are listed by their own host alone.',
    requestParams: {
      query: z.object({
        status: statusQuery.optional(),
        limit: limitQuery.optional(),
        cursor: jobCursorQuery.optional(),
        all: allQuery.optional(),
      }),
    },
    security: keyNeededIfConfigured,
    ok: jobList,
    okText: 'A page.',
  },
  'GET /jobs/{job_id}': {
    id: 'getJob',
    summary: 'Get a job',
    description:
      'The response for a background job that has succeeded contains its answer. The service deletes the job `MODEL_API_JOB_TTL_SECONDS` after its end.',
    requestParams: jobId,
    security: keyNeededIfConfigured,
    ok: jobBody,
    okText: 'The job.',
  },
  'DELETE /jobs/{job_id}': {
    id: 'deleteJob',
    summary: 'Cancel a job, or delete a background job',
    description:
      'Cancels a waiting or running background job, which remains readable. Deletes an ended background job. Also cancels any other job, by its id in `GET /jobs`; the request of that job receives 403 `forbidden`. A key with the scope `admin` ends the jobs of all clients, and deletes only its own.',
    requestParams: { ...jobId, query: z.object({ keep_ended: keepEndedQuery.optional() }) },
    security: keyNeededIfConfigured,
    ok: deletedJob,
    okText: 'How it ended.',
  },
  'GET /jobs/{job_id}/events': {
    id: 'followJob',
    summary: 'Follow a background job',
    description:
      'The events of a streamed request from the beginning, and `cancelled`. Each event except `queued` has an increasing `id`; a request with this `Last-Event-ID` continues the stream after that event.',
    requestParams: { ...jobId, header: z.object({ 'Last-Event-ID': lastEventId.optional() }) },
    security: keyNeededIfConfigured,
    ok: 'text/event-stream',
    okText: 'The stream. It ends with the job.',
  },
  'GET /health': {
    id: 'getHealth',
    summary: 'Liveness and readiness',
    description:
      'The answer comes from memory within milliseconds under any load, and no process is started. The status is 200 while the service accepts jobs, even if `status` is `degraded`.',
    ok: healthBody,
    okText: 'The service takes jobs.',
  },
  'GET /health/history': {
    id: 'getHealthHistory',
    summary: 'The last readiness checks, oldest first',
    description: 'With `since`, only the checks after that time.',
    requestParams: { query: z.object({ since: sinceQuery.optional() }) },
    ok: historyBody,
    okText: 'The checks.',
  },
  'POST /health/recheck': {
    id: 'recheckHealth',
    summary: 'Check the model CLI now',
    description:
      'Simultaneous requests share one check. The check clears the state `login refused`. If jobs are blocked, the next job is started as a trial. The request is refused if no API key is configured.',
    security: keyNeeded,
    ok: healthBody,
    okText: 'The health after the check.',
  },
  'GET /metrics': {
    id: 'getMetrics',
    summary: 'Metrics for Prometheus',
    description: 'Needs an API key with the scope `metrics` if `MODEL_API_METRICS_AUTH` is true.',
    security: keyNeededIfConfigured,
    ok: 'text/plain',
    okText:
      'Text format 0.0.4, or OpenMetrics 1.0.0 for clients that accept it; with gzip for clients that accept gzip.',
    alsoAs: 'application/openmetrics-text',
  },
  'POST /store/backup': {
    id: 'backUpStore',
    summary: 'Copy the file of the store',
    description:
      'The copy is written to the folder of the store and never replaces a file. Turns of conversations wait until it is complete.',
    requestBody: json(backupRequest, { name: 'backup.db' }),
    security: keyNeeded,
    ok: storeBackup,
    okText: 'The copy is on the disk.',
  },
  'POST /store/verify': {
    id: 'verifyStore',
    summary: 'Check the store',
    description:
      'Checks for damage, for files that other users can read, and for expired records that are not yet deleted.',
    requestBody: json(verifyRequest, {}),
    security: keyNeeded,
    ok: storeReport,
    okText: 'The result of the check.',
  },
  'POST /store/purge': {
    id: 'purgeClient',
    summary: 'Delete all data of a client',
    description:
      'Its conversations, background jobs, stored answers and usage are deleted from memory and from the store. Running requests still receive their answers.',
    requestBody: json(purgeRequest, { client: 'key alice' }),
    security: keyNeeded,
    ok: purgeReport,
    okText: 'What was deleted.',
  },
  'GET /version': {
    id: 'getVersion',
    summary: 'Versions of the service, of Node.js and of the model CLI',
    description: 'The model CLI is null until the first readiness check.',
    ok: versionBody,
    okText: 'Versions.',
  },
  'GET /models': {
    id: 'listModels',
    summary: 'The models that a request may name',
    description:
      'The list contains aliases. `object` and `data` are the same as in `GET /v1/models`, for clients with a base URL without /v1. With an `anthropic-version`, the response is that of `GET /v1/models`.',
    ok: modelList.extend(nativeModels).meta({ id: 'Models' }),
    okText: 'The models.',
  },
  'GET /v1/models': {
    id: 'listSdkModels',
    summary: 'The models, for SDKs of OpenAI and Anthropic',
    description:
      'The response has the form of Anthropic if the request has an `anthropic-version`, otherwise in the form of OpenAI.',
    ok: z.union(sharedForms.map(({ models }) => models)),
    okText: 'The models.',
  },
  'GET /v1/models/{id}': {
    id: 'getSdkModel',
    summary: 'One model, for SDKs of OpenAI and Anthropic',
    description:
      'The response has the form of Anthropic if the request has an `anthropic-version`, otherwise in the form of OpenAI.',
    requestParams: {
      path: z.object({ id: z.string().meta({ description: 'Id of the model; a slash in it may be encoded or not.' }) }),
    },
    ok: z.union(sharedForms.map(({ model }) => model)),
    okText: 'The model.',
  },
  'GET /openapi.yaml': {
    id: 'getOpenApi',
    summary: 'The description of this API',
    description: 'The document is generated from the schemas that check requests.',
    ok: 'application/yaml',
    okText: 'OpenAPI 3.1.',
  },
  'GET /docs': {
    id: 'getDocs',
    summary: 'The description of this API as an interactive page',
    description: 'The page loads nothing from other hosts.',
    ok: 'text/html',
    okText: 'Swagger UI.',
  },
};

/**
 * Returns the OpenAPI 3.1 document, from the schemas that validate requests. Times, sizes and names come from the code.
 */
export function openApiDocument(version: string) {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  const keyFields = keyFieldsOf(features);
  const ports = features.flatMap(({ port = [] }) => port);
  const added = features.flatMap((feature) => feature.endpointsWith?.(keyFields, ports) ?? feature.endpoints);
  const withOperation = (endpoint: Endpoint): Described => ({
    ...{ endpoint, operation: operations[nameOf(endpoint)], section: tagOf[endpoint.route] },
    ...{ form: sharedEndpoints.includes(endpoint) ? sharedForm : nativeForm, others: otherResponses(endpoint) },
  });
  const described = [
    ...endpoints.map(withOperation),
    ...added.map((endpoint) => describedOf(endpoint)),
    ...sharedEndpoints.map(withOperation),
    ...borrowed.filter(({ formOf }) => formOf === null).flatMap((each) => describedAs(each, anyDoor)),
    ...doors.flatMap((door) => [door, ...borrowed.filter(isOf(door))].flatMap((each) => describedAs(each, door))),
  ];
  for (const each of described) {
    const path = each.endpoint.route.replace(/\/$/, ''); // /console leads to /console/
    paths[path] = { ...paths[path], [each.endpoint.method.toLowerCase()]: operationOf(each) };
  }
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'prompt-relay',
        version,
        description: 'A local model command-line tool as a REST API for everyone on a shared workstation.',
        license: { name: 'MIT', identifier: 'MIT' },
        contact: { name: 'The operator of this service' },
      },
      servers: [{ url: '.' }],
      tags,
      paths,
      components: {
        schemas: { StatusChange: statusChange },
        securitySchemes: {
          apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
          bearer: { type: 'http', scheme: 'bearer' },
        },
      },
    },
    { override: ({ jsonSchema }) => completeSchema(jsonSchema) },
  );
}

/** Kinds of stores. */
const storeKinds = storeFamiliesOf(features).map(({ kind }) => kind);

interface OpenSchema {
  minimum?: number | undefined;
  maximum?: number | undefined;
  enum?: unknown;
}

/**
 * Adds the kinds of stores, which features have. Removes the limits of safe integers, which do not come from the API and
 * are not useful examples.
 */
function completeSchema(schema: OpenSchema): void {
  if (Array.isArray(schema.enum) && schema.enum.length === 0) schema.enum = storeKinds;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}

/** Endpoint of the core or of a feature. */
type AnyEndpoint = Pick<FeatureEndpoint, 'method' | 'errors' | 'success'> & { readonly route: string };

/** Forms of errors and of streams in the API that an endpoint belongs to. */
interface ApiForm extends Pick<DoorDescription, 'error' | 'stream'> {
  readonly isNative: boolean;
}

/** Endpoint with all that the document says about it. */
interface Described {
  readonly endpoint: AnyEndpoint;
  readonly operation: Operation;
  readonly section: string;
  readonly form: ApiForm;
  /** Responses that are no errors, in addition to that of a success. */
  readonly others: ZodOpenApiResponsesObject;
}

/** Returns the description of an endpoint of a feature. `door`: the API that it belongs to; by default, the native one. */
function describedOf(
  endpoint: FeatureEndpoint,
  door?: Pick<DoorDescription, 'section' | 'error' | 'stream'>,
): Described {
  const { id, summary, description, query, params, body, form: sentForm, runsModel, runsInBackground } = endpoint;
  const { answer: ok, answerText: okText, isStreamed = runsModel === true, alsoAs } = endpoint;
  const security = endpoint.alwaysNeedsKey ? keyNeeded : keyNeededIfConfigured;
  const texts = Object.entries(params ?? {}).map(([name, text]) => [name, z.string().meta({ description: text })]);
  const key = endpoint.onceText && z.string().meta({ description: endpoint.onceText }).optional();
  const requestParams = {
    ...(texts.length > 0 && { path: z.object(Object.fromEntries(texts)) }),
    ...(query && { query: z.object(query) }),
    ...(runsModel && (runsInBackground ? preferring : once)),
    ...(key && { header: z.object({ 'Idempotency-Key': key }) }),
  };
  const operation = {
    ...{ id, summary, description, ok, okText, isStreamed },
    ...(alsoAs && { alsoAs }),
    ...(!endpoint.isOpen && { security }),
    ...(Object.keys(requestParams).length > 0 && { requestParams }),
    ...(body && { requestBody: json(body.schema, body.example) }),
    ...(sentForm && { requestBody: { required: true, content: { 'multipart/form-data': { schema: sentForm } } } }),
  };
  const form = door === undefined ? nativeForm : { ...door, isNative: false };
  const withoutBody = Object.entries(endpoint.others ?? {}).map(([status, text]) => [status, { description: text }]);
  const content = { 'application/json': { schema: form.error } };
  const errors = Object.entries(endpoint.otherErrors ?? {}).map(([status, text]) => [
    status,
    { description: text, content },
  ]);
  return {
    ...{ endpoint, operation, section: door?.section ?? sectionOf(endpoint) },
    form,
    others: {
      ...(runsInBackground && { '202': accepted(acceptedThroughDoor) }),
      ...Object.fromEntries([...withoutBody, ...errors]),
    },
  };
}

/** Returns the section of an endpoint of a feature in the native API. */
function sectionOf({ route }: FeatureEndpoint): string {
  return /^\/(?:chat|jobs)\b/.test(route) ? 'The model' : 'The service';
}

function operationOf({ endpoint, operation, section, form, others }: Described): ZodOpenApiOperationObject {
  const { id, ok: _ok, okText: _okText, isStreamed: _isStreamed, alsoAs: _alsoAs, ...rest } = operation;
  return {
    operationId: id,
    tags: [section],
    security: [],
    ...rest,
    responses: {
      [String(endpoint.success ?? 200)]: okResponse(operation, endpoint, form),
      ...others,
      ...errorResponses(endpoint, form),
      ...unusable(endpoint),
      default: unforeseen(form),
    },
  } as ZodOpenApiOperationObject;
}

/** Schema of errors of a route. Those of broken HTTP have the native error format, because no path is known. */
function errorOfAny({ isNative, error }: ApiForm): z.ZodType {
  return isNative ? errorBody : z.union([errorBody, error]);
}

/** Returns the response for errors before a route is known, such as broken HTTP. */
function unforeseen(form: ApiForm) {
  const description =
    `Broken HTTP (\`validation_error\`; with ${brokenHttp.tooSlow} when the request came too slowly, with ` +
    `${brokenHttp.headersTooLarge} when its headers are too large), or a defect of the service (\`internal_error\`).`;
  return { description, content: { 'application/json': { schema: errorOfAny(form) } } };
}

/** Schema of a job's answer if the request sets `stream` or accepts only event streams. */
const eventStream = z.string().meta({
  description:
    'Server-sent events, each `data` one JSON object: `queued` {position}, again whenever it changes; `started` ' +
    '{queue_ms}; with `thoughts: true`, `thought` {text} …; `delta` {text} …; then `done` with the body of the plain response, or `error` with the error body.',
});

const nativeForm: ApiForm = {
  ...{ isNative: true, error: errorBody },
  stream: { mediaType: 'text/event-stream', schema: eventStream },
};

/** Forms of the paths that several APIs share. None of their answers is a stream. */
const sharedForm: ApiForm = {
  ...{ isNative: false, error: z.union(sharingDoors.map(({ error }) => error)) },
  stream: nativeForm.stream,
};

/** Errors of paths that any API may have. */
const anyDoor = { ...sharedForm, section: 'For SDKs' };

function describedAs(
  { endpoints: each }: Pick<EndpointsOfApi, 'endpoints'>,
  door: Pick<DoorDescription, 'section' | 'error' | 'stream'>,
): Described[] {
  return each.map((endpoint) => describedOf(endpoint, door));
}

/** Returns a function that returns whether endpoints have the errors of this API. */
function isOf(door: DoorDescription): (each: EndpointsOfApi) => boolean {
  return ({ formOf }) => door.endpoints.some(({ route }) => route === formOf);
}

/** Whether a request runs a model, so that an Idempotency-Key prevents a second run. */
function runsModel({ requestBody, isStreamed }: Operation): boolean {
  return requestBody !== undefined && isStreamed !== false;
}

function okResponse(operation: Operation, { route }: AnyEndpoint, { stream }: ApiForm) {
  const { ok, okText: description, requestBody, isStreamed = requestBody !== undefined } = operation;
  const also = operation.alsoAs === undefined ? {} : { [operation.alsoAs]: { schema: z.string() } };
  const data = route === '/status/stream' ? { 'x-change': { $ref: '#/components/schemas/StatusChange' } } : {};
  if (typeof ok === 'string') return { description, content: { [ok]: { schema: z.string(), ...data }, ...also } };
  const streamed = isStreamed ? { [stream.mediaType]: { schema: stream.schema } } : {};
  const headers = runsModel(operation) ? { headers: z.object({ ...idempotencyHeaders, ...fallbackHeaders }) } : {};
  return { description, ...headers, content: { 'application/json': { schema: ok }, ...streamed, ...also } };
}

/** Schema in OpenAI's format, with the additional fields of this service. */
const acceptedThroughDoor = z.looseObject({
  ...acceptedBody.shape,
  created_at: z.int().meta({ description: 'Seconds since the epoch.' }),
});

/** Returns the response to a request whose job runs in the background. */
function accepted(schema: z.ZodType) {
  return {
    description:
      'The job was accepted because of `Prefer: respond-async` (or `background` in /v1/responses). `Location` is the address of the job.',
    headers: z.object({
      Location: z.string(),
      'Preference-Applied': z.literal('respond-async'),
      ...idempotencyHeaders,
    }),
    content: { 'application/json': { schema } },
  };
}

function otherResponses({ others = [] }: Endpoint): ZodOpenApiResponsesObject {
  const known = { 202: accepted(acceptedBody), 204: { description: 'No event follows: the job has ended.' } };
  return Object.fromEntries(others.map((status) => [String(status), known[status]])) as ZodOpenApiResponsesObject;
}

const unhealthy = 'The service drains, or in strict mode: the model CLI is not ready.';

/** Returns the response 503 of /health, which has the body of /health instead of an error, or may have it. */
function unusable({ route, errors }: AnyEndpoint): ZodOpenApiResponsesObject {
  if (route !== '/health' && route !== '/health/recheck') return {};
  const hasError = errors.includes('store_unavailable');
  const description = hasError ? `${unhealthy} Or \`store_unavailable\`.` : unhealthy;
  const schema = hasError ? z.union([healthBody, errorBody]) : healthBody;
  return { '503': { description, content: { 'application/json': { schema } } } };
}

/** Returns one response for each status. The description lists the codes with this status. */
function errorResponses({ errors }: AnyEndpoint, form: ApiForm): ZodOpenApiResponsesObject {
  const byStatus = new Map<number, PublicCode[]>();
  for (const code of new Set([...commonErrors, ...errors])) {
    byStatus.set(httpStatusOf[code], [...(byStatus.get(httpStatusOf[code]) ?? []), code]);
  }
  const entries = [...byStatus].map(([status, codes]) => [
    String(status),
    {
      description: codes.map((code) => `\`${code}\``).join(', '),
      content: {
        'application/json': form.isNative
          ? { schema: errorBody, example: exampleOf(codes) }
          : { schema: status === httpStatusOf.validation_error ? errorOfAny(form) : form.error },
      },
    },
  ]);
  return Object.fromEntries(entries);
}

function exampleOf([code]: readonly PublicCode[]) {
  return { error: code, message: 'why, in a sentence', request_id: '0b8f6f5e-7c36-4a53-9d0b-0a9a54a1c0de' };
}
