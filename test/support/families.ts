import { endpoints, knownResponses } from '../../src/shared/api/responses.js';
import { errorCodes } from '../../src/shared/errors.js';

type Labels = Readonly<Record<string, readonly string[]>>;

/** One family: its type, and its label sets, each as the values of every label; null where they are facts. */
export interface Family {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labelSets: readonly Readonly<Record<string, string>>[] | null;
}

const routes = [...new Set(endpoints.map(({ route }) => route)), 'other'];
const responses = knownResponses.map(({ method, route, code }) => ({ method, route, code: String(code) }));
const jobs = every({
  operation: ['ask', 'chat'],
  outcome: [
    'ok',
    'timeout',
    'queue_timeout',
    'cli_error',
    'spawn_error',
    'cancelled',
    'shutting_down',
    'internal_error',
  ],
});

/** Every family of the service's own, by its name without the prefix. */
export const families: Readonly<Record<string, Family>> = {
  http_requests_total: { type: 'counter', labelSets: responses },
  http_request_duration_seconds: { type: 'histogram', labelSets: responses },
  http_requests_in_flight: gauge(),
  http_aborted_requests_total: counter({ route: routes }),
  errors_total: counter({ route: routes, error: errorCodes }),
  jobs_total: { type: 'counter', labelSets: jobs },
  job_duration_seconds: { type: 'histogram', labelSets: jobs },
  queue_wait_seconds: { type: 'histogram', labelSets: every({ outcome: ['started', 'timeout', 'cancelled'] }) },
  jobs_active: gauge(),
  jobs_queued: gauge(),
  jobs_limit: gauge(),
  queue_limit: gauge(),
  rejected_total: counter({ reason: ['queue_full', 'conversations_busy', 'draining'] }),
  queue_timeouts_total: counter(),
  rate_limited_total: counter(),
  conversations: gauge(),
  conversation_bytes: gauge(),
  conversation_tokens: gauge(),
  conversations_created_total: counter(),
  conversations_removed_total: counter({ cause: ['deleted', 'expired', 'evicted'] }),
  tokens_total: counter({ direction: ['input', 'output'] }),
  ready: gauge(),
  draining: gauge(),
  readiness_last_check_timestamp_seconds: gauge(),
  readiness_checks_total: counter({
    result: ['ready', 'not_ready'],
    trigger: ['start', 'interval', 'forced', 'failure'],
  }),
  cli_exits_total: counter({ class: ['ok', 'nonzero', 'signal', 'spawn_error'] }),
  cli_kills_total: counter({
    signal: ['SIGTERM', 'SIGKILL'],
    reason: ['done', 'timeout', 'cancelled', 'shutting_down', 'retired'],
  }),
  orphans_reaped_total: counter(),
  cli_output_bytes_total: counter({ stream: ['stdout', 'stderr'] }),
  cli_processes: gauge({ state: ['standby', 'live', 'busy', 'stopping'] }),
  cli_startup_seconds: { type: 'histogram', labelSets: [{}] },
  time_to_first_delta_seconds: { type: 'histogram', labelSets: every({ operation: ['ask', 'chat'] }) },
  standby_total: counter({ result: ['hit', 'miss'] }),
  live_session_total: counter({ result: ['hit', 'replay'] }),
  readiness_check_duration_seconds: { type: 'histogram', labelSets: [{}] },
  workers: gauge({ state: ['starting', 'ready', 'stopping'] }),
  worker_restarts_total: counter({ cause: ['crash', 'unresponsive', 'reload'] }),
  worker_scrape_failures_total: counter(),
  log_write_errors_total: counter(),
  build_info: { type: 'gauge', labelSets: null },
  config_info: { type: 'gauge', labelSets: null },
};

function counter(labels: Labels = {}): Family {
  return { type: 'counter', labelSets: every(labels) };
}

function gauge(labels: Labels = {}): Family {
  return { type: 'gauge', labelSets: every(labels) };
}

/** Every combination of these labels' values. */
function every(labels: Labels): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (sets, [label, values]) => sets.flatMap((set) => values.map((value) => ({ ...set, [label]: value }))),
    [{}],
  );
}
