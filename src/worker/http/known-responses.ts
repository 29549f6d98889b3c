import {
  brokenHttp,
  commonErrors,
  doorEndpoints,
  type Endpoint,
  endpoints,
  type RoutePath,
} from '../../shared/api/endpoints.js';
import { httpStatusOf } from '../../shared/errors.js';

/** Route that a request matched, else `other`. */
export type RouteLabel = RoutePath | 'other';

/** Labels that a response is counted under. */
export interface KnownResponse {
  readonly method: string;
  readonly route: RouteLabel;
  readonly code: number;
}

const { validation_error, forbidden, not_found, method_not_allowed, concurrency_limited, internal_error } =
  httpStatusOf;
const named = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
const other = 'other';
const all = [...endpoints, ...doorEndpoints];
const methods = [...named, other] as const;
export const routeLabels: readonly RouteLabel[] = [...new Set(all.map(({ route }) => route)), other];

export function methodLabel(method: string): (typeof methods)[number] {
  return methods.find((known) => known === method) ?? 'other';
}

function codesOf({ method, route, errors, success = 200, others = [] }: Endpoint): readonly number[] {
  const common = commonErrors.filter((error) => error !== 'forbidden'); // foreign Hosts and Origins have no route yet
  const own = [...common, ...errors];
  const readsBody = (method === 'POST' || method === 'PATCH') && !bodyless.includes(route);
  const broken = readsBody ? Object.values(brokenHttp) : [];
  return [
    success,
    ...others,
    ...own.map((error) => httpStatusOf[error]),
    internal_error,
    ...broken,
    ...extraCodesOf(route),
  ];
}

/** Routes whose POST has no body. */
const bodyless: readonly RoutePath[] = ['/health/recheck', '/v1/responses/{response_id}/cancel'];

/** Status for an overloaded model in the Anthropic API. */
const overloaded = 529;

/** Status of the redirects to the console. */
const found = 302;

function extraCodesOf(route: RoutePath): readonly number[] {
  if (route === '/v1/messages') return [overloaded];
  if (route === '/docs') return [not_found]; // for unknown paths below /docs
  if (route === '/console/') return [found, not_found]; // includes redirects to it
  // Health answers 503 with its ordinary body while the service drains or, in strict mode, is not ready.
  return route === '/health' || route === '/health/recheck' ? [503] : [];
}

const ofEndpoints: readonly KnownResponse[] = all.flatMap((endpoint) => {
  const asked = endpoint.method === 'GET' ? ['GET', 'HEAD'] : [endpoint.method];
  return asked.flatMap((method) => codesOf(endpoint).map((code) => ({ method, route: endpoint.route, code })));
});

const ofOtherMethods: readonly KnownResponse[] = all.flatMap(({ route }) => {
  const taken = ofEndpoints.filter((response) => response.route === route).map(({ method }) => method);
  const refused = methods.filter((method) => !taken.includes(method));
  return refused.map((method) => ({ method, route, code: method_not_allowed }));
});

const ofNoRoute: readonly KnownResponse[] = [
  ...methods.flatMap((method) => [validation_error, forbidden, not_found].map((code) => ({ method, code }))),
  ...['GET', 'HEAD'].map((method) => ({ method, code: 200 })), // probe of Ollama’s clients, on a separate port
  { method: 'OPTIONS', code: 204 }, // preflight request of an allowed origin
  ...Object.values(brokenHttp).map((code) => ({ method: other, code })),
  { method: other, code: method_not_allowed },
  { method: other, code: concurrency_limited }, // too many pipelined requests
].map((response) => ({ ...response, route: other }));

/** Every combination of method, route and status that can occur, once. */
export const knownResponses: readonly KnownResponse[] = [
  ...new Map([...ofEndpoints, ...ofOtherMethods, ...ofNoRoute].map((response) => [keyOf(response), response])).values(),
];

function keyOf({ method, route, code }: KnownResponse): string {
  return [method, route, code].join(' ');
}
