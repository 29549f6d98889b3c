import { features } from '../src/features.js';
import { variablesOf } from '../src/shared/config/feature-variables.js';
import { type VariableName, variables } from '../src/shared/config/variables.js';

/** Meaning of each variable of the core, and its default as shown in the table if that differs from the value. */
const meanings: Readonly<Record<VariableName, readonly [meaning: string, shownDefault?: string]>> = {
  MODEL_API_HOST: ['bind address; any but loopback needs an API key'],
  MODEL_API_PORT: ['TCP port; 0 picks a free one and logs it, here and for other ports'],
  MODEL_API_SOCKET: ['also listen on this Unix socket, mode 0660'],
  MODEL_API_WORKERS: ['HTTP workers', 'min(cores, 4)'],
  MODEL_API_KEY: ['the API key'],
  MODEL_API_KEY_FILE: [
    'file with API keys, `key` or `name key` a line; else `$CREDENTIALS_DIRECTORY/api_key`. Read only at the start: a removed key works until a restart',
  ],
  MODEL_API_KEYS_FILE: ['file with named API keys, `name:sha256:<hex>[:options]` a line'],
  MODEL_API_METRICS_AUTH: ['`true`: GET /metrics needs an API key with the scope `metrics`'],
  MODEL_API_ALLOWED_HOSTS: [
    'accepted Host names, without their ports',
    'loopback names and the bind address; any on a wildcard address',
  ],
  MODEL_API_TRUST_PROXY: ['addresses and CIDR blocks whose X-Forwarded-For counts', 'none'],
  MODEL_API_BODY_LIMIT: ['largest request body, else 413'],
  MODEL_API_TIMEOUT: ['time limit of a job, seconds'],
  MODEL_API_STALL_TIMEOUT: [
    'longest wait for the first output of the model, and longest silence of the model CLI after it, seconds; 0 is off',
  ],
  MODEL_API_MAX_CONCURRENT: ['running jobs'],
  MODEL_API_MAX_QUEUE: ['waiting jobs; 64 MiB of text at most'],
  MODEL_API_QUEUE_TIMEOUT_MS: ['longest wait for a slot'],
  MODEL_API_CLIENT_MAX_CONCURRENT: ['running jobs of one client; 0 is no limit'],
  MODEL_API_DRAIN_TIMEOUT_SECONDS: ['time for jobs at shutdown'],
  MODEL_API_KILL_GRACE_MS: ['longest time between SIGTERM and SIGKILL; 400 ms at most while a slot waits'],
  MODEL_API_RATE_LIMIT_WINDOW_SECONDS: ['rate window of one client'],
  MODEL_API_RATE_LIMIT_MAX_REQUESTS: [
    'requests of one client in a window on POST /ask, POST /chat, its forks and imports; 0 is off',
  ],
  MODEL_API_STRICT_HEALTH: ['`true`: /health answers 503 while the model CLI is not ready'],
  MODEL_API_READINESS_INTERVAL_SECONDS: ['time between readiness checks; 0 is off'],
  MODEL_API_HEALTH_HISTORY_LIMIT: ['readiness checks in /health/history'],
  MODEL_API_CONVERSATION_TTL_SECONDS: [
    'a conversation expires this long after its last activity',
    '`2592000` (30 days) with a `sqlite` or Redis store, else `86400`',
  ],
  MODEL_API_MAX_CONVERSATIONS: ['stored conversations, and stored responses; the least recently active one goes first'],
  MODEL_API_CONVERSATION_MEMORY_MB: [
    'text of all conversations together, 8 MB at most for each; stored responses may use a quarter of this in addition',
  ],
  MODEL_API_CLI: [
    'the [kind of model CLI](clis.md), such as `claude`, or the path of an [adapter](adapters.md). `auto` is `claude` if it is on the PATH, in production, or named by `MODEL_API_CLI_COMMAND`; else `demo`',
  ],
  MODEL_API_CLI_COMMAND: [
    'the program; for `command` and `acp` with arguments (`{model}` stands for the model). No shell runs it',
    "the adapter's own",
  ],
  MODEL_API_CLI_ARGS: ['extra arguments, for example to allow tools or directories', 'none'],
  MODEL_API_CLI_ENV: ['names of further variables for the CLI', 'none'],
  MODEL_API_CLIS: [
    '[several CLIs](clis.md#several-clis), the default first, such as `claude*2,local=command:ollama run {model}`; `*2` limits the running jobs of one',
    'none',
  ],
  MODEL_API_DEFAULT_MODEL: [
    'model of a request that names none',
    "the first of `MODEL_API_ALLOWED_MODELS`, else the CLI's own",
  ],
  MODEL_API_ALLOWED_MODELS: ['models that a request may name; others are 400', 'any'],
  MODEL_API_MODEL_ALIASES: [
    '[names that stand for models](clis.md#names-of-models), such as `gpt-4o-mini=haiku,*=default`',
    'none',
  ],
  MODEL_API_MAX_OUTPUT_BYTES: [
    'longest answer with its calls and thoughts; a longer one is `cli_error` (output_too_large)',
  ],
  MODEL_API_EXPOSE_STDERR: [
    '`true`: callers see the stderr of a failed model CLI without known secrets; it may name paths',
  ],
  MODEL_API_STANDBY: ['CLI processes started in advance for each launch in use; 0 is off'],
  MODEL_API_LIVE_SESSIONS: ['conversations with a live CLI process between turns; 0 is off'],
  MODEL_API_SESSION_IDLE_SECONDS: ['such a process ends after this time without a turn'],
  MODEL_API_REUSE: [
    '`off`: a CLI process never [answers a second question](operations.md#renewed-processes) of the same client',
  ],
  MODEL_API_LOG_LEVEL: ['`debug`, `info`, `warn`, `error` or `silent`'],
  MODEL_API_LOG_FORMAT: ['`json`; `text` for people; `auto`: `text` on a terminal, else `json`'],
  MODEL_CODE_OAUTH_TOKEN: ['credential of the CLI; no other program gets it'],
  MODEL_CODE_OAUTH_TOKEN_FILE: [
    'file with that token; else `$CREDENTIALS_DIRECTORY/oauth_token` of systemd. Read only at the start; the `token-file` of an [account](accounts.md) is read again when it changes',
  ],
};

type VariableRow = readonly [name: string, shownDefault: string, meaning: string];

/** Returns the rows of the variables of the core: name, and in Markdown default and meaning. */
export function coreRows(): VariableRow[] {
  return Object.entries(variables).map(([name, [, , fallback]]) => {
    const [meaning, shown = codeOf(fallback)] = meanings[name as VariableName];
    return [name, shown, meaning];
  });
}

/** Returns the rows of the variables of features. */
export function featureRows(): VariableRow[] {
  return Object.entries(variablesOf(features)).map(([name, { fallback, meaning, shownDefault = codeOf(fallback) }]) => [
    name,
    shownDefault,
    meaning,
  ]);
}

function codeOf(fallback: string | null): string {
  return fallback === null ? '–' : `\`${fallback}\``;
}
