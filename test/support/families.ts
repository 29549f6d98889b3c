import { toolRoutes } from '../../src/shared/api/endpoints.js';
import { publicCodes } from '../../src/shared/errors.js';

type Labels = Readonly<Record<string, readonly string[]>>;

/** Methods, a route, and the status codes of these methods on it. */
type Responses = readonly [methods: string, route: string, codes: string];

/** Metric family with its type and label sets. Each set has the values of every label; null if the labels are facts. */
export interface Family {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labelSets: readonly Readonly<Record<string, string>>[] | null;
  /** Names of the labels, if there is no label set at the start. */
  readonly labels?: readonly string[];
}

/** Answers of the endpoints, by methods and route. Not derived from the code's list, which is under test. */
const ofEndpoints: readonly Responses[] = [
  ['POST', '/ask', '200 202 400 401 403 408 409 413 422 429 431 500 503 504'],
  ['GET HEAD', '/chat', '200 400 401 403 429 500 503'],
  ['POST', '/chat', '200 202 400 401 403 408 409 413 422 429 431 500 503 504'],
  ['GET HEAD', '/chat/{conversation_id}', '200 400 401 403 404 429 500 503'],
  ['PATCH', '/chat/{conversation_id}', '200 400 401 403 404 408 413 429 431 500 503'],
  ['DELETE', '/chat/{conversation_id}', '200 400 401 403 404 429 500 503'],
  ['GET HEAD', '/chat/{conversation_id}/messages', '200 400 401 403 404 429 500 503'],
  ['POST', '/chat/{conversation_id}/fork', '201 400 401 403 404 408 413 429 431 500 503'],
  ['GET HEAD', '/jobs', '200 400 401 403 429 500 503'],
  ['GET HEAD', '/jobs/{job_id}', '200 400 401 403 404 429 500 503'],
  ['DELETE', '/jobs/{job_id}', '200 400 401 403 404 429 500 503'],
  ['GET HEAD', '/jobs/{job_id}/events', '200 204 400 401 403 404 429 500 503'],
  ['GET HEAD', '/health', '200 400 500 503'],
  ['GET HEAD', '/health/history', '200 400 500'],
  ['POST', '/health/recheck', '200 400 401 403 429 500 503'],
  ['POST', '/store/backup', '200 400 401 403 408 413 429 431 500 503'],
  ['POST', '/store/verify', '200 400 401 403 408 413 429 431 500 503'],
  ['POST', '/store/purge', '200 400 401 403 408 413 429 431 500 503'],
  ['GET HEAD', '/usage', '200 400 401 403 429 500 503'],
  ['GET HEAD', '/status', '200 400 401 403 429 500'],
  ['GET HEAD', '/status/stream', '200 400 401 403 429 500'],
  ['GET HEAD', '/setup', '200 400 401 403 429 500'],
  ['GET HEAD', '/metrics', '200 400 401 403 429 500'],
  ['GET HEAD', '/version', '200 400 500'],
  ['GET HEAD', '/models', '200 400 500'],
  ['GET HEAD', '/openapi.yaml', '200 400 500'],
  ['GET HEAD', '/docs', '200 400 404 500'],
  ['GET HEAD', '/console/', '200 302 400 404 500'],
  ['GET HEAD', '/v1/models', '200 400 500'],
  ['GET HEAD', '/v1/models/{id}', '200 400 404 500'],
  ['POST', '/v1/chat/completions', '200 400 401 403 404 408 409 413 422 429 431 500 503 504'],
  ['POST', '/v1/responses', '200 202 400 401 403 404 408 409 413 422 429 431 500 503 504'],
  ['GET HEAD', '/v1/responses/{response_id}', '200 400 401 403 404 429 500 503'],
  ['DELETE', '/v1/responses/{response_id}', '200 400 401 403 404 429 500 503'],
  ['POST', '/v1/responses/{response_id}/cancel', '200 400 401 403 404 429 500 503'],
  ['POST', '/v1/messages', '200 400 401 403 404 408 409 413 422 429 431 500 503 504 529'],
  ['POST', '/v1/messages/count_tokens', '200 400 401 403 408 413 429 431 500'],
  ['POST', '/mcp', '200 202 400 401 403 408 409 413 422 429 431 500 503'],
  ['GET HEAD', '/api/tags', '200 400 500'],
  ['GET HEAD', '/api/ps', '200 400 500'],
  ['GET HEAD', '/api/version', '200 400 500'],
  ['POST', '/api/show', '200 400 401 403 404 408 413 429 431 500'],
  ['POST', '/api/chat', '200 400 401 403 404 408 409 413 422 429 431 500 503 504'],
  ['POST', '/api/generate', '200 400 401 403 404 408 409 413 422 429 431 500 503 504'],
];

/** Answers before an endpoint is found, and to broken HTTP. */
const ofNoEndpoint: readonly Responses[] = [
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/ask', '405'],
  ['PUT PATCH DELETE OPTIONS other', '/chat', '405'],
  ['POST PUT OPTIONS other', '/chat/{conversation_id}', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/chat/{conversation_id}/messages', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/chat/{conversation_id}/fork', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/jobs', '405'],
  ['POST PUT PATCH OPTIONS other', '/jobs/{job_id}', '405'],
  ['POST PUT PATCH OPTIONS other', '/v1/responses/{response_id}', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/v1/responses/{response_id}/cancel', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/jobs/{job_id}/events', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/health', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/health/history', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/health/recheck', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/store/backup', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/store/verify', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/store/purge', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/usage', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/status', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/status/stream', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/setup', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/metrics', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/version', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/models', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/openapi.yaml', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/docs', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/console/', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/v1/models', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/v1/models/{id}', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/v1/chat/completions', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/v1/responses', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/v1/messages', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/v1/messages/count_tokens', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/mcp', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/api/tags', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/api/ps', '405'],
  ['POST PUT PATCH DELETE OPTIONS other', '/api/version', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/api/show', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/api/chat', '405'],
  ['GET HEAD PUT PATCH DELETE OPTIONS other', '/api/generate', '405'],
  ['GET HEAD', 'other', '200 400 403 404'],
  ['POST PUT PATCH DELETE', 'other', '400 403 404'],
  ['OPTIONS', 'other', '204 400 403 404'],
  ['other', 'other', '400 403 404 405 408 429 431'],
];

const routes = [...new Set(ofEndpoints.map(([, route]) => route)), 'other'];
/** The only CLI of the scraped services. */
const cli = ['demo'];
const outcomes = [
  'ok',
  'timeout',
  'queue_timeout',
  'cli_error',
  'spawn_error',
  'cancelled',
  'shutting_down',
  'rate_limited',
  'store_unavailable',
  'internal_error',
];
const jobs = every({ operation: ['ask', 'chat'], outcome: outcomes });

/** Metric families of the service, by name without the prefix. */
export const families: Readonly<Record<string, Family>> = {
  http_requests_total: { type: 'counter', labelSets: [...ofEndpoints, ...ofNoEndpoint].flatMap(labelSetsOf) },
  http_request_duration_seconds: { type: 'histogram', labelSets: ofEndpoints.flatMap(labelSetsOf).filter(isTimed) },
  http_requests_in_flight: gauge(),
  http_aborted_requests_total: counter({ route: routes }),
  errors_total: counter({ route: routes, error: publicCodes }),
  jobs_total: { type: 'counter', labelSets: jobs },
  job_duration_seconds: { type: 'histogram', labelSets: jobs },
  job_processor_seconds_total: counter({ operation: ['ask', 'chat'] }),
  job_peak_memory_bytes: { type: 'histogram', labelSets: every({ operation: ['ask', 'chat'] }) },
  queue_wait_seconds: { type: 'histogram', labelSets: every({ outcome: ['started', 'timeout', 'cancelled'] }) },
  jobs_active: gauge(),
  jobs_queued: gauge(),
  jobs_limit: gauge(),
  queue_limit: gauge(),
  rejected_total: counter({ reason: ['queue_full', 'client_bound', 'conversations_busy', 'draining', 'budget'] }),
  queue_timeouts_total: counter(),
  rate_limited_total: counter(),
  tools_ignored_total: counter({ route: [...toolRoutes] }),
  tool_rounds_total: counter({ outcome: ['live', 'replay', 'refused'] }),
  tool_result_bytes_total: counter(),
  client_jobs_total: counter({ client: ['other'], outcome: outcomes }),
  client_refused_total: counter({ client: ['other'] }),
  client_jobs_queued: gauge({ client: ['other'] }),
  /** Without series if no key has a budget. */
  client_budget_used_ratio: { type: 'gauge', labelSets: [], labels: ['client', 'budget'] },
  background_jobs: gauge({ state: ['queued', 'running'] }),
  background_jobs_limit: gauge(),
  conversations: gauge(),
  conversation_bytes: gauge(),
  conversation_tokens: gauge(),
  conversations_created_total: counter(),
  conversations_removed_total: counter({ cause: ['deleted', 'expired', 'evicted'] }),
  stored_responses: gauge(),
  stored_response_bytes: gauge(),
  store_up: gauge(),
  store_operation_seconds: {
    type: 'histogram',
    labelSets: every({
      operation: [
        'enter',
        'commit',
        'remove',
        'read',
        'restore',
        'tidy',
        'job',
        'usage',
        'answer',
        'response',
        'upkeep',
      ],
    }),
  },
  tokens_total: counter({ direction: ['input', 'output'] }),
  ready: gauge({ cli }),
  draining: gauge(),
  readiness_last_check_timestamp_seconds: gauge({ cli }),
  readiness_checks_total: counter({
    cli,
    result: ['ready', 'not_ready'],
    trigger: ['start', 'interval', 'forced', 'failure'],
  }),
  breaker_open: gauge({ cli, reason: ['quota', 'auth'] }),
  breaker_openings_total: counter({ cli, reason: ['quota', 'auth'] }),
  quota_utilization_ratio: gauge({
    cli,
    window: [
      ...['five_hour', 'seven_day', 'seven_day_opus', 'seven_day_sonnet', 'seven_day_overage_included'],
      ...['overage', 'other'],
    ],
  }),
  cli_exits_total: counter({ cli, class: ['ok', 'nonzero', 'signal', 'spawn_error'] }),
  cli_kills_total: counter({
    cli,
    signal: ['SIGTERM', 'SIGKILL'],
    reason: ['done', 'timeout', 'cancelled', 'shutting_down', 'retired'],
  }),
  orphans_reaped_total: counter({ cli }),
  cli_output_bytes_total: counter({ cli, stream: ['stdout', 'stderr'] }),
  cli_processes: gauge({ cli, state: ['standby', 'live', 'tools', 'busy', 'stopping'] }),
  termination_means: gauge({ means: ['cgroup', 'process-group'] }),
  cli_startup_seconds: { type: 'histogram', labelSets: every({ cli }) },
  tool_hold_seconds: { type: 'histogram', labelSets: every({ cli }) },
  time_to_first_delta_seconds: { type: 'histogram', labelSets: every({ operation: ['ask', 'chat'] }) },
  standby_total: counter({ cli, result: ['hit', 'miss'] }),
  cli_requests_refused_total: counter({ cli, request: ['permission', 'files', 'terminal', 'tool', 'other'] }),
  live_session_total: counter({ cli, result: ['hit', 'replay'] }),
  readiness_check_duration_seconds: { type: 'histogram', labelSets: every({ cli }) },
  workers: gauge({ state: ['starting', 'ready', 'stopping'] }),
  worker_restarts_total: counter({ cause: ['crash', 'unresponsive', 'reload'] }),
  worker_scrape_failures_total: counter(),
  trace_spans_total: counter({ result: ['exported', 'dropped'] }),
  uncaught_exceptions_total: counter({ role: ['primary', 'worker'] }),
  log_write_errors_total: counter(),
  build_info: { type: 'gauge', labelSets: null },
  config_info: { type: 'gauge', labelSets: null },
};

function labelSetsOf([methods, route, codes]: Responses): Record<string, string>[] {
  return every({ method: methods.split(' '), route: [route], code: codes.split(' ') });
}

/** Whether durations are measured: not for streams, which last as long as their viewers. */
function isTimed({ route, code }: Readonly<Record<string, string>>): boolean {
  return route !== '/status/stream' || code !== '200';
}

function counter(labels: Labels = {}): Family {
  return { type: 'counter', labelSets: every(labels) };
}

function gauge(labels: Labels = {}): Family {
  return { type: 'gauge', labelSets: every(labels) };
}

/** Returns every combination of these label values. */
function every(labels: Labels): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (sets, [label, values]) => sets.flatMap((set) => values.map((value) => ({ ...set, [label]: value }))),
    [{}],
  );
}
