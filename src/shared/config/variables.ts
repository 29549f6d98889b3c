import type { z } from 'zod';
import {
  cidrs,
  command,
  flag,
  host,
  hosts,
  integer,
  modelName,
  modelNames,
  oneOf,
  origins,
  seconds,
  size,
  socketPath,
  text,
  variableNames,
  words,
} from './values.js';

/** One environment variable: how it is read, what it is when unset (null: nothing), and what the README says of it. */
export interface Variable<T extends z.ZodType = z.ZodType, F extends string | null = string | null> {
  readonly schema: T;
  readonly fallback: F;
  readonly shown: string;
  readonly meaning: string;
}

function variable<T extends z.ZodType, F extends string | null>(
  schema: T,
  fallback: F,
  meaning: string,
  shown?: string,
): Variable<T, F> {
  return { schema, fallback, meaning, shown: shown ?? fallback ?? '–' };
}

export const cliKinds = ['auto', 'claude', 'command', 'demo'] as const;
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

const daySeconds = 86_400;

/** The body of a chat has an answer twice, a character takes up to six in JSON, and no string has more than 512 Mi. */
const maxAnswerBytes = 32 * 1024 ** 2;

/** The whole configuration, in the order the README shows it. */
export const variables = {
  MODEL_API_HOST: variable(host, '127.0.0.1', 'bind address; anything but loopback needs an API key'),
  MODEL_API_PORT: variable(integer(0, 65_535), '5051', 'TCP port; 0 picks a free one and logs it'),
  MODEL_API_SOCKET: variable(socketPath, null, 'also listen on this Unix socket, mode 0660'),
  MODEL_API_WORKERS: variable(integer(1, 64), null, 'HTTP workers', 'min(cores, 4)'),
  MODEL_API_KEY: variable(text, null, 'the API key'),
  MODEL_API_KEY_FILE: variable(
    text,
    null,
    'file with API keys: one a line, `key` or `name key`; else `$CREDENTIALS_DIRECTORY/api_key`',
  ),
  MODEL_API_ALLOWED_HOSTS: variable(
    hosts,
    null,
    'Host names accepted, separated by commas; the port is not compared',
    'loopback names and the bind address; any on a wildcard address',
  ),
  MODEL_API_ALLOWED_ORIGINS: variable(origins, '', 'browser origins accepted (and given CORS headers)', 'none'),
  MODEL_API_TRUST_PROXY: variable(cidrs, '', 'addresses and CIDR blocks whose X-Forwarded-For is believed', 'none'),
  MODEL_API_BODY_LIMIT: variable(
    size(1, 64 * 1024 ** 2),
    '1mb',
    'largest request body; a larger one is 413, answered before it has been sent',
  ),
  MODEL_API_TIMEOUT: variable(seconds(0.001, daySeconds), '120', 'execution time-out, seconds'),
  MODEL_API_FIRST_OUTPUT_TIMEOUT: variable(
    seconds(0, daySeconds),
    '0',
    'longest wait for the first output of the model, seconds; 0 is off',
  ),
  MODEL_API_STALL_TIMEOUT: variable(
    seconds(0, daySeconds),
    '0',
    'longest silence of the model CLI once the model has begun, seconds; 0 is off',
  ),
  MODEL_API_MAX_CONCURRENT: variable(integer(1, 1024), '4', 'model jobs at once'),
  MODEL_API_MAX_QUEUE: variable(integer(0, 1_000_000), '100', 'jobs waiting; 64 MiB of text at most'),
  MODEL_API_QUEUE_TIMEOUT_MS: variable(integer(1, daySeconds * 1000), '15000', 'longest wait for a slot, milliseconds'),
  MODEL_API_DRAIN_TIMEOUT_SECONDS: variable(
    seconds(0, daySeconds),
    '30',
    'time that running and queued jobs get at shutdown',
  ),
  MODEL_API_KILL_GRACE_MS: variable(
    integer(0, 60_000),
    '2000',
    'longest time between SIGTERM and SIGKILL; where a slot waits for the end, at most 400 ms of it',
  ),
  MODEL_API_RATE_LIMIT_WINDOW_SECONDS: variable(
    seconds(1, daySeconds),
    '60',
    'length of the rate window of one IP address, seconds',
  ),
  MODEL_API_RATE_LIMIT_MAX_REQUESTS: variable(
    integer(0, 1_000_000_000),
    '0',
    'requests of one IP address per window on POST /ask and POST /chat; 0 is off',
  ),
  MODEL_API_STRICT_HEALTH: variable(flag, 'false', '`true`: /health answers 503 while the model CLI is not ready'),
  MODEL_API_READINESS_INTERVAL_SECONDS: variable(
    seconds(0, daySeconds),
    '60',
    'time between readiness checks, seconds; 0: only at start, when forced and when a job shows otherwise',
  ),
  MODEL_API_HEALTH_HISTORY_LIMIT: variable(integer(1, 100_000), '100', 'readiness checks kept for /health/history'),
  MODEL_API_CONVERSATION_TTL_SECONDS: variable(
    seconds(0.001, 365 * daySeconds),
    '86400',
    'life of a conversation since its last activity, seconds',
  ),
  MODEL_API_MAX_CONVERSATIONS: variable(
    integer(1, 10_000_000),
    '1000',
    'conversations kept; beyond it the least recently active goes',
  ),
  MODEL_API_CONVERSATION_MEMORY_MB: variable(
    integer(1, 1_000_000),
    '256',
    'text held by all conversations together, MB',
  ),
  MODEL_API_CLI: variable(
    oneOf(cliKinds),
    'auto',
    '`claude`, `command` or `demo`; `auto` is `claude` if it is on PATH, else `demo` with a warning (always `claude` with NODE_ENV=production, or where `MODEL_API_CLI_COMMAND` names it)',
  ),
  MODEL_API_CLI_COMMAND: variable(
    command,
    null,
    'the program, and for `command` its arguments too (`{model}` stands for the model, here and in `MODEL_API_CLI_ARGS`); split as a shell splits words, run without a shell in an empty folder',
    "the adapter's own",
  ),
  MODEL_API_CLI_ARGS: variable(
    words,
    '',
    'extra arguments, for the operator to open up more (tools, directories)',
    'none',
  ),
  MODEL_API_CLI_ENV: variable(
    variableNames,
    '',
    'names of further variables that the CLI may see, separated by commas',
    'none',
  ),
  MODEL_API_DEFAULT_MODEL: variable(
    modelName,
    null,
    'model of a request that names none',
    "the first of `MODEL_API_ALLOWED_MODELS`, else the CLI's own",
  ),
  MODEL_API_ALLOWED_MODELS: variable(
    modelNames,
    '',
    'models a request may name, separated by commas; any other is 400. A command without `{model}` has only its own',
    'any',
  ),
  MODEL_API_MAX_OUTPUT_BYTES: variable(
    integer(1, maxAnswerBytes),
    '8388608',
    'longest answer, bytes; a longer one is `cli_error` (output_too_large)',
  ),
  MODEL_API_STANDBY: variable(
    integer(0, 16),
    '1',
    'CLI processes kept started and waiting, for each launch in use; 0 is off',
  ),
  MODEL_API_LIVE_SESSIONS: variable(
    integer(0, 1024),
    '4',
    'conversations whose CLI process stays up between turns; 0 is off',
  ),
  MODEL_API_SESSION_IDLE_SECONDS: variable(
    seconds(1, daySeconds),
    '300',
    'time without a turn after which such a process ends, seconds',
  ),
  MODEL_API_LOG_LEVEL: variable(oneOf(logLevels), 'info', '`debug`, `info`, `warn`, `error` or `silent`'),
  MODEL_CODE_OAUTH_TOKEN: variable(text, null, 'handed to the CLI as its own credential variable, to nothing else'),
} satisfies Record<string, Variable>;

export type Variables = typeof variables;
export type VariableName = keyof Variables;
export type Values = {
  readonly [K in VariableName]: z.output<Variables[K]['schema']> | Extract<Variables[K]['fallback'], null>;
};
