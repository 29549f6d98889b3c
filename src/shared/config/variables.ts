import type { z } from 'zod';
import { logFormats } from '../log/text.js';
import { claudeFamily, cliSchemas } from './clis.js';
import {
  cidrs,
  command,
  flag,
  host,
  hosts,
  integer,
  megabytes,
  modelAliases,
  modelName,
  modelNames,
  oneOf,
  seconds,
  size,
  socketPath,
  text,
  variableNames,
  words,
} from './values.js';

/**
 * Environment variable: its name in the configuration (null if the configuration does not contain its value as it is),
 * its schema, and its text if it is unset (null for no value). tools/configuration-table.ts has the descriptions for
 * the documents.
 */
type Variable = readonly [key: string | null, schema: z.ZodType, fallback: string | null];

/** Schemas for a core without features. */
const coreClis = cliSchemas([claudeFamily]);
const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

const daySeconds = 86_400;

/**
 * Limit of MODEL_API_MAX_OUTPUT_BYTES. The body of a chat contains the answer twice, JSON takes up to six bytes per
 * character, and a string has at most 512 Mi characters.
 */
const maxAnswerBytes = 32 * 1024 ** 2;

/** All variables of the core, in the order of the documents. */
export const variables = {
  MODEL_API_HOST: ['host', host, '127.0.0.1'],
  MODEL_API_PORT: ['port', integer(0, 65_535), '5051'],
  MODEL_API_SOCKET: ['socketPath', socketPath, null],
  MODEL_API_WORKERS: [null, integer(1, 64), null],
  MODEL_API_KEY: [null, text, null],
  MODEL_API_KEY_FILE: [null, text, null],
  MODEL_API_KEYS_FILE: ['keysFile', text, null],
  MODEL_API_METRICS_AUTH: ['metricsAuth', flag, 'false'],
  MODEL_API_ALLOWED_HOSTS: [null, hosts, null],
  MODEL_API_TRUST_PROXY: ['trustedProxies', cidrs, ''],
  MODEL_API_BODY_LIMIT: ['bodyLimitBytes', size(1, 64 * 1024 ** 2), '16mb'],
  MODEL_API_TIMEOUT: ['executionMs', seconds(0.001, daySeconds), '120'],
  MODEL_API_STALL_TIMEOUT: ['stallMs', seconds(0, daySeconds), '0'],
  MODEL_API_MAX_CONCURRENT: ['maxConcurrent', integer(1, 1024), '4'],
  MODEL_API_MAX_QUEUE: ['maxQueue', integer(0, 1_000_000), '100'],
  MODEL_API_QUEUE_TIMEOUT_MS: ['queueTimeoutMs', integer(1, daySeconds * 1000), '120000'],
  MODEL_API_CLIENT_MAX_CONCURRENT: ['clientMaxConcurrent', integer(0, 1024), '0'],
  MODEL_API_DRAIN_TIMEOUT_SECONDS: ['drainMs', seconds(0, daySeconds), '30'],
  MODEL_API_KILL_GRACE_MS: ['killGraceMs', integer(0, 60_000), '2000'],
  MODEL_API_RATE_LIMIT_WINDOW_SECONDS: ['rateWindowMs', seconds(1, daySeconds), '60'],
  MODEL_API_RATE_LIMIT_MAX_REQUESTS: ['rateMaxRequests', integer(0, 1_000_000_000), '0'],
  MODEL_API_STRICT_HEALTH: ['strictHealth', flag, 'false'],
  MODEL_API_READINESS_INTERVAL_SECONDS: ['readinessIntervalMs', seconds(0, daySeconds), '60'],
  MODEL_API_HEALTH_HISTORY_LIMIT: ['historyLimit', integer(1, 100_000), '100'],
  MODEL_API_CONVERSATION_TTL_SECONDS: ['conversationTtlMs', seconds(0.001, 365 * daySeconds), null],
  MODEL_API_MAX_CONVERSATIONS: ['maxConversations', integer(1, 10_000_000), '1000'],
  MODEL_API_CONVERSATION_MEMORY_MB: ['conversationBytes', megabytes(1, 1_000_000), '256'],
  MODEL_API_CLI: ['cli', coreClis.MODEL_API_CLI, 'auto'],
  MODEL_API_CLI_COMMAND: ['cliCommand', command, null],
  MODEL_API_CLI_ARGS: ['cliArgs', words, ''],
  MODEL_API_CLI_ENV: ['cliEnv', variableNames, ''],
  MODEL_API_CLIS: ['clis', coreClis.MODEL_API_CLIS, ''],
  MODEL_API_DEFAULT_MODEL: ['defaultModel', modelName, null],
  MODEL_API_ALLOWED_MODELS: ['allowedModels', modelNames, ''],
  MODEL_API_MODEL_ALIASES: ['modelAliases', modelAliases, ''],
  MODEL_API_MAX_OUTPUT_BYTES: ['maxOutputBytes', integer(1, maxAnswerBytes), '8388608'],
  MODEL_API_EXPOSE_STDERR: ['exposeStderr', flag, 'false'],
  MODEL_API_STANDBY: ['standby', integer(0, 16), '1'],
  MODEL_API_LIVE_SESSIONS: ['liveSessions', integer(0, 1024), '4'],
  MODEL_API_SESSION_IDLE_SECONDS: ['sessionIdleMs', seconds(1, daySeconds), '300'],
  MODEL_API_REUSE: ['reuse', oneOf(['on', 'off']), 'on'],
  MODEL_API_LOG_LEVEL: ['logLevel', oneOf(logLevels), 'info'],
  MODEL_API_LOG_FORMAT: ['logFormat', oneOf(logFormats), 'auto'],
  MODEL_CODE_OAUTH_TOKEN: ['oauthToken', text, null],
  MODEL_CODE_OAUTH_TOKEN_FILE: [null, text, null],
} as const satisfies Record<string, Variable>;

const conversationsOnly = 'the limits of conversations apply to responses';

/** Variables of earlier versions without `MODEL_API_`, and what applies instead. */
export const removedVariables: ReadonlyMap<string, string> = new Map([
  ['CLI_LIMITS', 'an entry of MODEL_API_CLIS contains its limit, as in claude*2'],
  ['CLI_PROCESSES', 'each CLI process and its children have 512 processes and threads at most'],
  ['CLI_STRIP_ANSI', 'terminal sequences and last line ends are always removed; an adapter of your own can differ'],
  ['CLI_TEMPLATE', 'a program gets a conversation as a transcript; an adapter of your own can differ'],
  ['CLIENT_MAX_CONVERSATIONS', 'a client has a quarter of MODEL_API_MAX_CONVERSATIONS'],
  ['CLIENT_MAX_QUEUE', 'a client has its share; the option queue of a key sets another limit'],
  ['CONVERSATION_MAX_MB', 'a conversation has 8 MB of text at most'],
  ['FIRST_OUTPUT_TIMEOUT', 'MODEL_API_STALL_TIMEOUT also limits the wait for the first output'],
  ['MAX_RESPONSES', `${conversationsOnly} (MODEL_API_MAX_CONVERSATIONS)`],
  ['MAX_RESPONSE_BYTES', `${conversationsOnly} (a quarter of MODEL_API_CONVERSATION_MEMORY_MB)`],
]);

/**
 * Returns the lifetime of conversations if the variable is unset. A durable store has the longer one, because users
 * return to conversations that survive a restart.
 */
export function defaultConversationTtlMs(isDurable: boolean): number {
  return (isDurable ? 30 : 1) * daySeconds * 1000;
}

type Variables = typeof variables;
export type VariableName = keyof Variables;

/** Parsed values of all variables. */
export type Values = {
  readonly [N in VariableName]: z.output<Variables[N][1]> | Extract<Variables[N][2], null>;
};

/** Values by their names in the configuration. */
export type Settings = {
  readonly [N in VariableName as Extract<Variables[N][0], string>]: Values[N];
};

export function settingsOf(values: Values): Settings {
  const named = Object.entries(variables).map(([name, [key]]) => [key, values[name as VariableName]] as const);
  return Object.fromEntries(named.filter(([key]) => key !== null)) as Settings;
}
