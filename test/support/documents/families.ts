import { batchApis, lineOutcomes } from '../../../src/features/batches/views.js';
import { features } from '../../../src/features.js';
import { doorNamesOf } from '../../../src/shared/features/feature.js';
import { type MetricRecord, type MetricTable, metrics } from '../../../src/shared/tables/metrics.js';

type Labels = Readonly<Record<string, readonly string[]>>;

/** Metric family with its type and the label sets it begins with. Each set has the values of every label; null if the labels are facts. */
export interface Family {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labelSets: readonly Readonly<Record<string, string>>[] | null;
  /** Names of the labels, without that of an account. */
  readonly labels: readonly string[];
}

const { toolRoutes } = doorNamesOf(features);
/** The only CLI of the scraped services. */
const cli = ['demo'];
const outcomes = [
  ...['ok', 'timeout', 'queue_timeout', 'cli_error', 'spawn_error', 'cancelled', 'shutting_down', 'rate_limited'],
  ...['store_unavailable', 'internal_error'],
];

/** Values of the labels with which a metric begins. Other metrics with labels begin without a series. */
const starts: Readonly<Record<string, Labels>> = {
  jobs_total: { operation: ['ask', 'chat'], outcome: outcomes },
  job_duration_seconds: { operation: ['ask', 'chat'], outcome: ['ok'] },
  job_processor_seconds_total: { operation: ['ask', 'chat'] },
  job_peak_memory_bytes: { operation: ['ask', 'chat'] },
  queue_wait_seconds: { outcome: ['started', 'timeout', 'cancelled'] },
  rejected_total: { reason: ['queue_full', 'client_bound', 'conversations_busy', 'draining', 'budget'] },
  tools_ignored_total: { route: [...toolRoutes] },
  tool_rounds_total: { outcome: ['live', 'replay', 'refused'] },
  client_jobs_queued: { client: ['other'] },
  background_jobs: { state: ['queued', 'running'] },
  batch_lines_total: { api: [...batchApis], outcome: [...lineOutcomes] },
  conversations_removed_total: { cause: ['deleted', 'expired', 'evicted'] },
  config_file_faults: { file: ['keys', 'made_keys', 'accounts'] },
  tokens_total: { direction: ['input', 'cache_read', 'cache_write', 'output'] },
  web_searches_total: { cli },
  ready: { cli },
  readiness_last_check_timestamp_seconds: { cli },
  readiness_checks_total: {
    cli,
    result: ['ready', 'not_ready'],
    trigger: ['start', 'interval', 'forced', 'failure'],
  },
  breaker_open: { cli, reason: ['quota', 'auth'] },
  breaker_openings_total: { cli, reason: ['quota', 'auth'] },
  quota_utilization_ratio: {
    cli,
    window: [
      ...['five_hour', 'seven_day', 'seven_day_opus', 'seven_day_sonnet', 'seven_day_overage_included'],
      ...['overage', 'other'],
    ],
  },
  cli_exits_total: { cli, class: ['ok', 'nonzero', 'signal', 'spawn_error'] },
  cli_kills_total: {
    cli,
    signal: ['SIGTERM', 'SIGKILL'],
    reason: ['done', 'timeout', 'cancelled', 'shutting_down', 'retired'],
  },
  orphans_reaped_total: { cli },
  cli_output_bytes_total: { cli, stream: ['stdout', 'stderr'] },
  cli_processes: { cli, state: ['standby', 'live', 'renewed', 'tools', 'busy', 'stopping'] },
  termination_means: { means: ['cgroup', 'process-group'] },
  cli_startup_seconds: { cli },
  tool_hold_seconds: { cli },
  time_to_first_delta_seconds: { operation: ['ask', 'chat'] },
  standby_total: { cli, result: ['hit', 'miss'] },
  cli_late_messages_total: { cli },
  cli_requests_refused_total: { cli, request: ['permission', 'files', 'terminal', 'tool', 'other'] },
  live_session_total: { cli, result: ['hit', 'replay'] },
  questions_total: { cli, process: ['fresh', 'standby', 'renewed', 'live', 'rewound'] },
  readiness_check_duration_seconds: { cli },
  workers: { state: ['starting', 'ready', 'stopping'] },
  worker_restarts_total: { cause: ['crash', 'unresponsive', 'reload'] },
  trace_spans_total: { result: ['exported', 'dropped'] },
  webhook_attempts_total: { result: ['delivered', 'retried', 'failed', 'dropped'] },
  uncaught_exceptions_total: { role: ['primary', 'worker'] },
};

/** Metrics whose labels are facts about the service. */
const facts: readonly string[] = ['build_info', 'config_info'];

const table: MetricTable = Object.assign({}, metrics, ...features.map((feature) => feature.metrics));

/** Metric families of the service, by name without the prefix: first those of the core, then those of features. */
export const families: Readonly<Record<string, Family>> = Object.fromEntries(
  Object.entries(table).map(([name, record]) => [name, familyOf(name, record)]),
);

function familyOf(name: string, { type, labels }: MetricRecord): Family {
  if (facts.includes(name)) return { type, labelSets: null, labels };
  const start = starts[name] ?? (labels.length === 0 ? {} : null);
  // the CLI of the scraped services has no account
  const shown = labels.filter((label) => label !== 'account');
  return { type, labelSets: start === null ? [] : every(start), labels: shown };
}

/** Returns every combination of these label values. */
function every(labels: Labels): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (sets, [label, values]) => sets.flatMap((set) => values.map((value) => ({ ...set, [label]: value }))),
    [{}],
  );
}
