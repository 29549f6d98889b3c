import { type VariableName, variables } from '../src/shared/config/variables.js';

/** What each variable means, and how its default is shown where that is not simply the value. */
const meanings: Readonly<Record<VariableName, readonly [meaning: string, shownDefault?: string]>> = {
  MODEL_API_HOST: ['bind address; anything but loopback needs an API key'],
  MODEL_API_PORT: ['TCP port; 0 picks a free one and logs it'],
  MODEL_API_SOCKET: ['also listen on this Unix socket, mode 0660'],
  MODEL_API_AGENT_PORT: [
    'TCP port at which a front such as HAProxy asks how busy this host is ([several hosts](fleet.md)), on the address of `MODEL_API_HOST`; 0 picks a free one and logs it',
  ],
  MODEL_API_OLLAMA_PORT: [
    'also listen on this TCP port for [clients of Ollama](sdks.md#clients-of-ollama), on the address of `MODEL_API_HOST`: they expect 11434; 0 picks a free one and logs it',
  ],
  MODEL_API_WORKERS: ['HTTP workers', 'min(cores, 4)'],
  MODEL_API_KEY: ['the API key'],
  MODEL_API_KEY_FILE: ['file with API keys: one a line, `key` or `name key`; else `$CREDENTIALS_DIRECTORY/api_key`'],
  MODEL_API_KEYS_FILE: [
    'file with named API keys, `name:sha256:<hex>[:options]` one a line; read again when it changes',
  ],
  MODEL_API_METRICS_AUTH: ['`true`: GET /metrics needs an API key with the scope `metrics`'],
  MODEL_API_LOCAL_USERS: [
    '`identify`: local callers without a key are told apart by their user; `require`: callers who cannot be named so get 403; `off`',
    '`identify` on Linux, else `off`',
  ],
  MODEL_API_ALLOWED_USERS: [
    'names or ids of the local users who may call without a key, separated by commas; all others get 403',
    'any',
  ],
  MODEL_API_ALLOWED_HOSTS: [
    'Host names accepted, separated by commas; the port is not compared',
    'loopback names and the bind address; any on a wildcard address',
  ],
  MODEL_API_ALLOWED_ORIGINS: [
    'browser origins accepted (and given CORS headers), of any scheme, separated by commas: `https://app.example.org`, `app://obsidian.md`; `null` lets in every page that has none ([browsers](remote-access.md#browsers))',
    'none',
  ],
  MODEL_API_TRUST_PROXY: ['addresses and CIDR blocks whose X-Forwarded-For is believed', 'none'],
  MODEL_API_BODY_LIMIT: ['largest request body; a larger one is 413, answered before it has been sent'],
  MODEL_API_TIMEOUT: ['execution time-out, seconds'],
  MODEL_API_FIRST_OUTPUT_TIMEOUT: ['longest wait for the first output of the model, seconds; 0 is off'],
  MODEL_API_STALL_TIMEOUT: ['longest silence of the model CLI once the model has begun, seconds; 0 is off'],
  MODEL_API_MAX_CONCURRENT: ['model jobs at once'],
  MODEL_API_MAX_QUEUE: ['jobs waiting; 64 MiB of text at most'],
  MODEL_API_QUEUE_TIMEOUT_MS: ['longest wait for a slot, milliseconds'],
  MODEL_API_CLIENT_MAX_QUEUE: [
    'jobs of one client that may wait, at any time',
    'a quarter of `MODEL_API_MAX_QUEUE` while there are other clients, else all of it',
  ],
  MODEL_API_CLIENT_MAX_CONCURRENT: ['jobs of one client at once; its others wait meanwhile; 0: no limit of its own'],
  MODEL_API_DRAIN_TIMEOUT_SECONDS: ['time that running and queued jobs get at shutdown'],
  MODEL_API_KILL_GRACE_MS: [
    'longest time between SIGTERM and SIGKILL; where a slot waits for the end, at most 400 ms of it',
  ],
  MODEL_API_RATE_LIMIT_WINDOW_SECONDS: ['length of the rate window of one client, seconds'],
  MODEL_API_RATE_LIMIT_MAX_REQUESTS: [
    'requests of one client per window on POST /ask, POST /chat and its forks; 0 is off',
  ],
  MODEL_API_STRICT_HEALTH: ['`true`: /health answers 503 while the model CLI is not ready'],
  MODEL_API_READINESS_INTERVAL_SECONDS: [
    'time between readiness checks, seconds; 0: only at start, when forced and when a job shows otherwise',
  ],
  MODEL_API_HEALTH_HISTORY_LIMIT: ['readiness checks kept for /health/history'],
  MODEL_API_CONVERSATION_TTL_SECONDS: ['life of a conversation since its last activity, seconds'],
  MODEL_API_MAX_CONVERSATIONS: ['conversations kept; beyond it the least recently active goes'],
  MODEL_API_CONVERSATION_MEMORY_MB: ['text held by all conversations together, MB'],
  MODEL_API_CONVERSATION_MAX_MB: [
    'text of one conversation, MB; a turn that would go beyond it is 400, its last answer may',
  ],
  MODEL_API_MAX_RESPONSES: ['responses stored; beyond it the least recently used goes that none follows'],
  MODEL_API_MAX_RESPONSE_BYTES: ['texts of all stored responses together, bytes, such as `64mb`'],
  MODEL_API_MAX_JOBS: ['background jobs waiting; 64 MiB of text at most, and three quarters of one client at most'],
  MODEL_API_JOB_TTL_SECONDS: ['time that a background job is kept after its end, seconds'],
  MODEL_API_STORE: [
    'where conversations are kept: `memory` (a restart forgets them), `sqlite:/absolute/path.db`, a file that outlives it (needs Node.js 22.13 or later), or `redis://[user:password@]host[:port][/database][?prefix=name]` (`rediss://` with TLS), which several hosts share ([stores](stores.md))',
  ],
  MODEL_API_READ_BACK: ['`false`: conversations cannot be listed, read or forked over HTTP'],
  MODEL_API_CLI: [
    '`claude`, `codex`, `command`, `demo`, an agent of the Agent Client Protocol by its name (`gemini`, `opencode`, `qwen`, `goose`), `acp` for any other of them ([model CLIs](clis.md)), or the absolute path of a file with an [adapter](adapters.md); `auto` is `claude` if it is on PATH, else `demo` with a warning (always `claude` with NODE_ENV=production, or where `MODEL_API_CLI_COMMAND` names it)',
  ],
  MODEL_API_CLI_COMMAND: [
    'the program, and for `command` and `acp` its arguments too (`{model}` stands for the model, here and in `MODEL_API_CLI_ARGS`); split as a shell splits words, run without a shell in an empty folder',
    "the adapter's own",
  ],
  MODEL_API_CLI_ARGS: ['extra arguments, for the operator to open up more (tools, directories)', 'none'],
  MODEL_API_CLI_ENV: ['names of further variables that the CLI may see, separated by commas', 'none'],
  MODEL_API_CLIS: [
    'several model CLIs in the place of one, separated by commas, the default first: each a kind as in `MODEL_API_CLI`, with a name before it (`local=command`) and its command after it (`:ollama run {model}`) where needed ([how](clis.md#several-clis))',
    'none',
  ],
  MODEL_API_CLI_LIMITS: ['jobs of each of `MODEL_API_CLIS` at once, such as `local:1,codex:2`; others wait', 'none'],
  MODEL_API_CLI_TEMPLATE: [
    'how `command` writes system text and history to stdin: `transcript`, `plain` (the texts alone) or `jsonl` (a JSON object a line) ([forms](clis.md#what-it-reads))',
  ],
  MODEL_API_CLI_STRIP_ANSI: [
    '`true`: the answer of `command` goes without colours and other terminal sequences, and without its last line ends',
  ],
  MODEL_API_CLI_HOME_FILES: [
    'for a CLI with a private HOME: files below the HOME of the service that it may use, such as those of its login, separated by commas',
    'those of its kind ([model CLIs](clis.md))',
  ],
  MODEL_API_DEFAULT_MODEL: [
    'model of a request that names none',
    "the first of `MODEL_API_ALLOWED_MODELS`, else the CLI's own",
  ],
  MODEL_API_ALLOWED_MODELS: [
    'models a request may name, separated by commas; any other is 400. A command without `{model}` has only its own',
    'any',
  ],
  MODEL_API_MODEL_ALIASES: [
    'names that stand for models, as in `gpt-4o-mini=haiku,*=default`; `*` is every name that is nothing else, `default` the model of a request that names none ([names](clis.md#names-of-models))',
    'none',
  ],
  MODEL_API_MAX_OUTPUT_BYTES: [
    'longest answer, bytes, with the inputs of its calls and the thoughts that its client has asked for; a longer one is `cli_error` (output_too_large)',
  ],
  MODEL_API_TOOLS: ['`off`: a request with `tools` is refused'],
  MODEL_API_SAMPLING: [
    '`off`: `temperature`, `top_p` and the maximum of tokens are ignored, and named in `X-Ignored-Parameters`, with every model CLI',
  ],
  MODEL_API_EXPOSE_STDERR: [
    '`true`: callers are told what a model CLI that fails wrote to stderr, without the secrets that the service knows; it may name paths',
  ],
  MODEL_API_STANDBY: ['CLI processes kept started and waiting, for each launch in use; 0 is off'],
  MODEL_API_LIVE_SESSIONS: ['conversations whose CLI process stays up between turns; 0 is off'],
  MODEL_API_SESSION_IDLE_SECONDS: ['time without a turn after which such a process ends, seconds'],
  MODEL_API_CGROUP: [
    '`auto`: each CLI process runs in a cgroup (v2) of its own where the service may make one, else in a process group; `off`; or the folder of the cgroup below which to make them',
  ],
  MODEL_API_CLI_MEMORY_MB: [
    'memory limit of each CLI process with everything it starts, MB; needs a cgroup with the memory controller',
    'none',
  ],
  MODEL_API_CLI_PROCESSES: [
    'limit of processes and threads of each CLI process with everything it starts; needs a cgroup with the pids controller',
    'none',
  ],
  MODEL_API_CONSOLE: ['`off`: no web console, neither at `/` nor at `/console/`'],
  MODEL_API_LOG_LEVEL: ['`debug`, `info`, `warn`, `error` or `silent`'],
  MODEL_API_LOG_FORMAT: [
    '`json`: one JSON object a line; `text`: lines for people; `auto`: `text` where stdout is a terminal, else `json`',
  ],
  MODEL_CODE_OAUTH_TOKEN: ['handed to the CLI as its own credential variable, to nothing else'],
  MODEL_CODE_OAUTH_TOKEN_FILE: [
    'a file with that token; without it, `$CREDENTIALS_DIRECTORY/oauth_token` is read, where systemd has loaded one',
  ],
  OTEL_EXPORTER_OTLP_ENDPOINT: [
    'an OpenTelemetry collector, such as `http://localhost:4318`: [traces](monitoring.md#traces) are sent to `/v1/traces` there, as OTLP over HTTP',
    'no traces',
  ],
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ['the same for traces alone, with its whole path', 'none'],
  OTEL_EXPORTER_OTLP_PROTOCOL: ['`http/json`: no other form of OTLP is spoken', 'http/json'],
  OTEL_EXPORTER_OTLP_HEADERS: [
    'headers of the requests to the collector, as in `authorization=Bearer%20abc`, separated by commas; a program of the model CLI gets them only by `MODEL_API_CLI_ENV`',
    'none',
  ],
  OTEL_SERVICE_NAME: ['`service.name` in traces', 'prompt-relay'],
  OTEL_RESOURCE_ATTRIBUTES: [
    'what all spans have in common, as in `deployment.environment.name=staging,team=ml`',
    'none',
  ],
  OTEL_TRACES_SAMPLER: [
    'which traces are sent: `parentbased_always_on`, `parentbased_always_off`, `parentbased_traceidratio`, `always_on`, `always_off` or `traceidratio`; with `parentbased_`, a caller that sends a `traceparent` decides for its own',
  ],
  OTEL_TRACES_SAMPLER_ARG: ['the share of traces for the two samplers that end in `traceidratio`, from 0 to 1'],
};

/** The rows of the table of variables: name, default, meaning. */
export function configurationRows(): [name: string, shownDefault: string, meaning: string][] {
  return Object.entries(variables).map(([name, [, , fallback]]) => {
    const [meaning, shown = fallback ?? '–'] = meanings[name as VariableName];
    return [name, shown, meaning];
  });
}
