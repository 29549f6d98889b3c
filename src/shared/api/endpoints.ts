import type { PublicCode } from '../errors.js';

/** Errors of every path: a malformed request, or a Host or Origin that is not allowed. */
export const commonErrors = ['validation_error', 'forbidden'] as const satisfies readonly PublicCode[];

/** Statuses for incomplete HTTP requests. The code is always `validation_error`. */
export const brokenHttp = { malformed: 400, tooSlow: 408, headersTooLarge: 431 } as const;

/** Errors of a wrong key, a missing scope, a user that is not allowed, or too many wrong keys. */
export const accessErrors = ['unauthorized', 'forbidden', 'rate_limited'] as const satisfies readonly PublicCode[];

export const jobErrors = [
  ...accessErrors,
  'idempotency_in_progress',
  'payload_too_large',
  'idempotency_mismatch',
  'concurrency_limited',
  'cli_error',
  'spawn_error',
  'internal_error',
  'shutting_down',
  'store_unavailable',
  'wait_too_long',
  'queue_timeout',
  'timeout',
] as const satisfies readonly PublicCode[];

/** Errors of endpoints that use the store. */
export const keptErrors = [...accessErrors, 'store_unavailable'] as const satisfies readonly PublicCode[];

/** Errors of endpoints that read a body and start no job. */
export const readingErrors = [
  ...accessErrors,
  'payload_too_large',
  'concurrency_limited',
] as const satisfies readonly PublicCode[];

const list = [
  { method: 'POST', route: '/ask', errors: [...jobErrors, 'not_found'], others: [202] },
  { method: 'POST', route: '/chat', errors: [...jobErrors, 'not_found'], others: [202] },
  { method: 'GET', route: '/jobs', errors: keptErrors },
  { method: 'GET', route: '/jobs/{job_id}', errors: [...keptErrors, 'not_found'] },
  { method: 'DELETE', route: '/jobs/{job_id}', errors: [...keptErrors, 'not_found'] },
  { method: 'GET', route: '/jobs/{job_id}/events', errors: [...keptErrors, 'not_found'], others: [204] },
  { method: 'GET', route: '/health', errors: [] },
  { method: 'GET', route: '/health/history', errors: [] },
  { method: 'POST', route: '/health/recheck', errors: keptErrors },
  { method: 'POST', route: '/store/backup', errors: [...readingErrors, 'store_unavailable'] },
  { method: 'POST', route: '/store/verify', errors: [...readingErrors, 'store_unavailable'] },
  { method: 'POST', route: '/store/purge', errors: [...readingErrors, 'store_unavailable'] },
  { method: 'GET', route: '/metrics', errors: accessErrors },
  { method: 'GET', route: '/version', errors: [] },
  { method: 'GET', route: '/models', errors: [] },
  { method: 'GET', route: '/openapi.yaml', errors: [] },
  { method: 'GET', route: '/docs', errors: [] },
] as const;

/** Endpoints that several compatibility APIs have. Their errors and bodies have the form of the API of a request. */
const shared = [
  { method: 'GET', route: '/v1/models', errors: [] },
  { method: 'GET', route: '/v1/models/{id}', errors: ['not_found'] },
] as const;

type Listed = (typeof list)[number] | (typeof shared)[number];
type NameOf<E extends Listed> = E extends Listed ? `${E['method']} ${E['route']}` : never;

/** Path with the names of its parameters in braces. */
export type RoutePath = Listed['route'];
export type EndpointName = NameOf<Listed>;

export interface Endpoint {
  readonly method: Listed['method'];
  readonly route: RoutePath;
  /** Error codes in addition to the common ones. */
  readonly errors: readonly PublicCode[];
  /** Status of a success; 200 if it is omitted. */
  readonly success?: 200 | 201;
  /** Other statuses that are not errors. */
  readonly others?: readonly (202 | 204)[];
}

/** All endpoints of the native API in the core. The HTTP metrics and the OpenAPI document are built from both lists. */
export const endpoints: readonly Endpoint[] = list;

/** All endpoints of the core that compatibility APIs share. */
export const sharedEndpoints: readonly Endpoint[] = shared;

export function nameOf({ method, route }: Endpoint): EndpointName {
  return `${method} ${route}` as EndpointName;
}
