import { batchApis, lineOutcomes } from '../../../src/features/batches/views.js';
import { features } from '../../../src/features.js';
import { doorNamesOf } from '../../../src/shared/features/feature.js';

type Labels = Readonly<Record<string, readonly string[]>>;

/** Metric family with its type and the label sets it begins with. Each set has the values of every label; null if the labels are facts. */
export interface Family {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labelSets: readonly Readonly<Record<string, string>>[] | null;
  /** Names of the labels, if there is no label set at the start. */
  readonly labels?: readonly string[];
}

const { toolRoutes } = doorNamesOf(features);
/** The only CLI of the scraped services. */
const cli = ['demo'];
const outcomes = [
  ...['ok', 'timeout', 'queue_timeout', 'cli_error', 'spawn_error', 'cancelled', 'shutting_down', 'rate_limited'],
  ...['store_unavailable', 'internal_error'],
];
const jobs = every({ operation: ['ask', 'chat'], outcome: outcomes });

/** Metric families of the service, by name without the prefix. */
export const families: Readonly<Record<string, Family>> = {
  http_requests_total: unseen('counter', 'method', 'route', 'code'),
  http_request_duration_seconds: unseen('histogram', 'method', 'route'),
  http_requests_in_flight: gauge(),
  http_aborted_requests_total: unseen('counter', 'route'),
  errors_total: unseen('counter', 'route', 'error'),
  jobs_total: { type: 'counter', labelSets: jobs },
  job_duration_seconds: { type: 'histogram', labelSets: every({ operation: ['ask', 'chat'], outcome: ['ok'] }) },
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
  fallbacks_total: unseen('counter', 'from', 'to', 'reason'),
  tool_rounds_total: counter({ outcome: ['live', 'replay', 'refused'] }),
  tool_result_bytes_total: counter(),
  client_jobs_total: unseen('counter', 'client', 'kind', 'outcome'),
  client_refused_total: unseen('counter', 'client', 'kind'),
  client_jobs_queued: { ...gauge({ client: ['other'] }), labels: ['client', 'kind'] },
  /** Without series if no key has a budget. */
  client_budget_used_ratio: unseen('gauge', 'client', 'kind', 'budget'),
  background_jobs: gauge({ state: ['queued', 'running'] }),
  background_jobs_limit: gauge(),
  batches_running: gauge(),
  batch_lines_total: counter({ api: [...batchApis], outcome: [...lineOutcomes] }),
  conversations: gauge(),
  conversation_bytes: gauge(),
  conversation_tokens: gauge(),
  conversations_created_total: counter(),
  conversations_removed_total: counter({ cause: ['deleted', 'expired', 'evicted'] }),
  stored_responses: gauge(),
  stored_response_bytes: gauge(),
  store_up: gauge(),
  config_file_faults: gauge({ file: ['keys', 'made_keys', 'accounts'] }),
  store_operation_seconds: unseen('histogram', 'operation'),
  tokens_total: counter({ direction: ['input', 'cache_read', 'cache_write', 'output'] }),
  web_searches_total: counter({ cli }),
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
  cli_processes: gauge({ cli, state: ['standby', 'live', 'renewed', 'tools', 'busy', 'stopping'] }),
  termination_means: gauge({ means: ['cgroup', 'process-group'] }),
  cli_startup_seconds: { type: 'histogram', labelSets: every({ cli }) },
  tool_hold_seconds: { type: 'histogram', labelSets: every({ cli }) },
  time_to_first_delta_seconds: { type: 'histogram', labelSets: every({ operation: ['ask', 'chat'] }) },
  standby_total: counter({ cli, result: ['hit', 'miss'] }),
  cli_late_messages_total: counter({ cli }),
  cli_requests_refused_total: counter({ cli, request: ['permission', 'files', 'terminal', 'tool', 'other'] }),
  live_session_total: counter({ cli, result: ['hit', 'replay'] }),
  questions_total: counter({ cli, process: ['fresh', 'standby', 'renewed', 'live', 'rewound'] }),
  readiness_check_duration_seconds: { type: 'histogram', labelSets: every({ cli }) },
  workers: gauge({ state: ['starting', 'ready', 'stopping'] }),
  worker_restarts_total: counter({ cause: ['crash', 'unresponsive', 'reload'] }),
  worker_scrape_failures_total: counter(),
  trace_spans_total: counter({ result: ['exported', 'dropped'] }),
  webhook_attempts_total: counter({ result: ['delivered', 'retried', 'failed', 'dropped'] }),
  uncaught_exceptions_total: counter({ role: ['primary', 'worker'] }),
  log_write_errors_total: counter(),
  build_info: { type: 'gauge', labelSets: null },
  config_info: { type: 'gauge', labelSets: null },
};

/** Family whose label sets exist from their first count on. */
function unseen(type: Family['type'], ...labels: string[]): Family {
  return { type, labelSets: [], labels };
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
