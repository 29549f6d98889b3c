import type { ErrorCode } from '../errors.js';
import type { Route } from '../metric-names.js';

export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly route: Exclude<Route, 'other'>;
  /** Error codes it can answer with, beside those that every path can. */
  readonly errors: readonly ErrorCode[];
}

/** A Host or Origin that is not allowed, a malformed request. */
export const commonErrors = ['validation_error', 'forbidden'] as const satisfies readonly ErrorCode[];

/**
 * Status of what breaks off as HTTP, before it is a request or on its way: always `validation_error`, at no endpoint's
 * choice.
 */
export const brokenHttp = { malformed: 400, tooSlow: 408, headersTooLarge: 431 } as const;

const jobErrors = [
  'unauthorized',
  'payload_too_large',
  'rate_limited',
  'concurrency_limited',
  'cli_error',
  'spawn_error',
  'internal_error',
  'shutting_down',
  'queue_timeout',
  'timeout',
] as const satisfies readonly ErrorCode[];

/** Every endpoint with the errors it documents. HTTP metrics start from it, and the OpenAPI document is built from it. */
export const endpoints: readonly Endpoint[] = [
  { method: 'POST', route: '/ask', errors: jobErrors },
  { method: 'POST', route: '/chat', errors: jobErrors },
  { method: 'GET', route: '/chat/{id}', errors: ['unauthorized', 'not_found'] },
  { method: 'DELETE', route: '/chat/{id}', errors: ['unauthorized', 'not_found'] },
  { method: 'GET', route: '/health', errors: [] },
  { method: 'GET', route: '/health/history', errors: [] },
  { method: 'POST', route: '/health/recheck', errors: ['unauthorized'] },
  { method: 'GET', route: '/metrics', errors: [] },
  { method: 'GET', route: '/version', errors: [] },
  { method: 'GET', route: '/models', errors: [] },
  { method: 'GET', route: '/openapi.yaml', errors: [] },
  { method: 'GET', route: '/docs', errors: [] },
];
