/** Metric: its type, its meaning for people, and its labels. Code, documents and tests read it. */
export interface MetricRecord {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Names of the labels. `account` is missing for the login of the service. */
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds of a histogram, in the unit of the metric. */
  readonly buckets?: readonly number[];
}

/** Metrics by name without the prefix. */
export type MetricTable = Readonly<Record<string, MetricRecord>>;

/** Seconds: most answers take milliseconds, but a job may take its full time limit. */
const answerBuckets = [0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120, 600];
const durationBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const memoryBuckets = [16, 64, 128, 256, 512, 1024, 2048, 4096].map((mb) => mb * 1024 ** 2);
const waitBuckets = [0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 600];
/** Seconds, from a write to the page cache up to a write to a busy disk. */
const storeBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const startupBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const holdBuckets = [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800];
const checkBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/** Metrics of the core, in the order of the documents. */
export const metrics = {
  http_requests_total: {
    type: 'counter',
    labels: ['method', 'route', 'code'],
    help: 'Requests answered, by method, route template and status code.',
  },
  http_request_duration_seconds: {
    type: 'histogram',
    labels: ['method', 'route'],
    buckets: answerBuckets,
    help: 'Time from the request head to the end of the response, of responses that an endpoint gave, streams of the status excluded.',
  },
  http_requests_in_flight: {
    type: 'gauge',
    labels: [],
    help: 'Requests that are being answered, viewers of the status included.',
  },
  http_aborted_requests_total: {
    type: 'counter',
    labels: ['route'],
    help: 'Requests whose client disconnected before the answer.',
  },
  errors_total: { type: 'counter', labels: ['route', 'error'], help: 'Error bodies sent.' },
  jobs_total: { type: 'counter', labels: ['operation', 'outcome'], help: 'Jobs that were admitted and have ended.' },
  job_duration_seconds: {
    type: 'histogram',
    labels: ['operation', 'outcome'],
    buckets: durationBuckets,
    help: 'Time from the admission of a job to its end, waiting included.',
  },
  job_processor_seconds_total: {
    type: 'counter',
    labels: ['operation'],
    help: 'Processor time of the processes of jobs, if they run in cgroups.',
  },
  job_peak_memory_bytes: {
    type: 'histogram',
    labels: ['operation'],
    buckets: memoryBuckets,
    help: 'Peak memory of the processes of a job, if the memory controller is delegated.',
  },
  queue_wait_seconds: {
    type: 'histogram',
    labels: ['outcome'],
    buckets: waitBuckets,
    help: 'Time that a job waited for its slot, by the result of the wait.',
  },
  jobs_active: { type: 'gauge', labels: [], help: 'Jobs that hold a slot.' },
  jobs_queued: { type: 'gauge', labels: [], help: 'Jobs that wait for a slot.' },
  jobs_limit: { type: 'gauge', labels: [], help: 'Slots.' },
  queue_limit: { type: 'gauge', labels: [], help: 'Places in the queue.' },
  rejected_total: { type: 'counter', labels: ['reason'], help: 'Jobs refused before they were admitted.' },
  queue_timeouts_total: {
    type: 'counter',
    labels: [],
    help: 'Jobs that waited for a slot longer than the queue time-out.',
  },
  rate_limited_total: {
    type: 'counter',
    labels: [],
    help: 'Requests refused because their client has used up its rate limit.',
  },
  tools_ignored_total: {
    type: 'counter',
    labels: ['route'],
    help: 'Requests with provider-hosted tools, which were ignored.',
  },
  tool_rounds_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Requests with tool results, by whether the waiting process received them.',
  },
  tool_result_bytes_total: { type: 'counter', labels: [], help: 'Bytes of the results that clients have sent.' },
  client_jobs_total: {
    type: 'counter',
    labels: ['client', 'kind', 'outcome'],
    help: 'Jobs that were admitted and have ended, by client: API keys, local users, and all others together.',
  },
  client_refused_total: {
    type: 'counter',
    labels: ['client', 'kind'],
    help: 'Jobs that were not admitted, by client.',
  },
  client_jobs_queued: { type: 'gauge', labels: ['client', 'kind'], help: 'Jobs that wait for a slot, by client.' },
  conversations: { type: 'gauge', labels: [], help: 'Conversations in memory.' },
  conversation_bytes: { type: 'gauge', labels: [], help: 'Text of all conversations, bytes.' },
  conversation_tokens: { type: 'gauge', labels: [], help: 'Tokens of all conversations, estimated.' },
  conversations_created_total: { type: 'counter', labels: [], help: 'Conversations whose first turn was answered.' },
  conversations_removed_total: { type: 'counter', labels: ['cause'], help: 'Removed conversations, by cause.' },
  store_up: { type: 'gauge', labels: [], help: '1 while the store accepts data.' },
  config_file_faults: {
    type: 'gauge',
    labels: ['file'],
    help: 'Faults of the files with keys and accounts, whose lines with faults are refused.',
  },
  store_operation_seconds: {
    type: 'histogram',
    labels: ['operation'],
    buckets: storeBuckets,
    help: 'Duration of a store operation, successful or failed. The store in memory is not measured.',
  },
  tokens_total: {
    type: 'counter',
    labels: ['direction'],
    help: 'Tokens of answered jobs, as the CLI reports them. Those read from and written to the cache of the model are part of the input.',
  },
  web_searches_total: {
    type: 'counter',
    labels: ['cli', 'account'],
    help: 'Web searches of ended jobs with any outcome.',
  },
  ready: {
    type: 'gauge',
    labels: ['cli', 'account'],
    help: '1 if the last readiness check found the model CLI ready.',
  },
  draining: { type: 'gauge', labels: [], help: '1 while the service drains.' },
  readiness_last_check_timestamp_seconds: {
    type: 'gauge',
    labels: ['cli', 'account'],
    help: 'Start of the last readiness check, seconds since the epoch; 0 before the first check.',
  },
  readiness_checks_total: {
    type: 'counter',
    labels: ['cli', 'account', 'result', 'trigger'],
    help: 'Readiness checks of the model CLI, by result and trigger.',
  },
  breaker_open: {
    type: 'gauge',
    labels: ['cli', 'account', 'reason'],
    help: '1 while jobs are blocked, by reason: the quota is used up, or the credential is refused.',
  },
  breaker_openings_total: {
    type: 'counter',
    labels: ['cli', 'account', 'reason'],
    help: 'Times that the service began to block jobs, by reason. Failed probes count.',
  },
  quota_utilization_ratio: {
    type: 'gauge',
    labels: ['cli', 'account', 'window'],
    help: "Used share of each window of the account's quota, as the model CLI last reported it; 0 if it did not.",
  },
  cli_exits_total: {
    type: 'counter',
    labels: ['cli', 'account', 'class'],
    help: 'Model CLI programs that have exited, or did not start.',
  },
  cli_kills_total: {
    type: 'counter',
    labels: ['cli', 'account', 'signal', 'reason'],
    help: 'Signals sent to model CLIs, by the reason for ending them.',
  },
  orphans_reaped_total: {
    type: 'counter',
    labels: ['cli', 'account'],
    help: 'Processes that outlived their program and were ended.',
  },
  cli_output_bytes_total: {
    type: 'counter',
    labels: ['cli', 'account', 'stream'],
    help: 'Bytes that model CLIs have written.',
  },
  cli_processes: { type: 'gauge', labels: ['cli', 'account', 'state'], help: 'Processes of each model CLI, by state.' },
  termination_means: {
    type: 'gauge',
    labels: ['means'],
    help: 'Method by which the service finds and ends processes of the model CLI: 1 for the method in use.',
  },
  cli_startup_seconds: {
    type: 'histogram',
    labels: ['cli', 'account'],
    buckets: startupBuckets,
    help: 'Time from the start of a process for a job to its first byte of output.',
  },
  tool_hold_seconds: {
    type: 'histogram',
    labels: ['cli', 'account'],
    buckets: holdBuckets,
    help: 'Time that a process waited for the results of its calls.',
  },
  time_to_first_delta_seconds: {
    type: 'histogram',
    labels: ['operation'],
    buckets: durationBuckets,
    help: 'Time from the slot of a job to the first piece of its answer.',
  },
  standby_total: {
    type: 'counter',
    labels: ['cli', 'account', 'result'],
    help: 'Jobs that found a process started in advance, or did not.',
  },
  cli_late_messages_total: {
    type: 'counter',
    labels: ['cli', 'account'],
    help: "Messages that the model's API has begun after the end of an answer.",
  },
  cli_requests_refused_total: {
    type: 'counter',
    labels: ['cli', 'account', 'request'],
    help: 'Refused requests of model CLIs, by the requested capability.',
  },
  live_session_total: {
    type: 'counter',
    labels: ['cli', 'account', 'result'],
    help: "Turns that found their conversation's process, or were replayed.",
  },
  questions_total: {
    type: 'counter',
    labels: ['cli', 'account', 'process'],
    help: 'Jobs that got a process, by its source.',
  },
  readiness_check_duration_seconds: {
    type: 'histogram',
    labels: ['cli', 'account'],
    buckets: checkBuckets,
    help: 'Duration of a readiness check.',
  },
  workers: { type: 'gauge', labels: ['state'], help: 'HTTP workers, by state.' },
  worker_restarts_total: {
    type: 'counter',
    labels: ['cause'],
    help: 'Workers started to replace another worker, by cause.',
  },
  worker_scrape_failures_total: {
    type: 'counter',
    labels: [],
    help: 'Workers that did not answer a scrape in time. Their last figures were used.',
  },
  uncaught_exceptions_total: { type: 'counter', labels: ['role'], help: 'Uncaught exceptions, by process.' },
  log_write_errors_total: { type: 'counter', labels: [], help: 'Log records that could not be written.' },
  build_info: {
    type: 'gauge',
    labels: ['version', 'commit', 'node_version'],
    help: 'Version of the service; always 1.',
  },
  config_info: {
    type: 'gauge',
    labels: ['workers', 'adapter', 'strict_health'],
    help: 'Configuration of the service; always 1.',
  },
} as const satisfies MetricTable;
export type MetricName = keyof typeof metrics;
