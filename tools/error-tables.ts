import { anthropicErrors } from '../src/features/anthropic/errors.js';
import { openAiErrors } from '../src/features/openai/errors.js';
import {
  type CliReason,
  cliError,
  cliReasons,
  estimatedRetries,
  fixedRetries,
  type PublicCode,
  publicCodes,
  RelayError,
} from '../src/shared/errors.js';
import { codeTable, reasonTable } from '../src/shared/tables/errors.js';

/** Explanation of each error code: its meaning, what the user does, and what the operator does. */
const codeMeanings: Readonly<Record<PublicCode, readonly [meaning: string, user: string, operator: string]>> = {
  validation_error: [
    'A field is missing, unknown or wrong; `details` names each. Also broken HTTP: 408 if it is too slow, 431 if its headers exceed 16 KiB. A body has at most 50,000 fields and 200 levels',
    'Correct the request. With `reason` `conversation_unknown`, begin a new conversation: the old one expired, was deleted, or belongs to another client',
    '[Store](stores.md) conversations, or a restart loses them',
  ],
  unauthorized: [
    'The API key is missing, wrong or expired, or two different keys were sent',
    'Send the key as `X-API-Key` or as `Authorization: Bearer`',
    'With `keys_rejected` in the log, a line [has a fault](clients.md#faults-in-the-keys-file)',
  ],
  forbidden: [
    'The Host, Origin or local user is not allowed, the key lacks a scope, no [account](accounts.md) serves the client, `MODEL_API_READ_BACK` is off, somebody ended the job, or (`reason` `storing_is_off`) it needs [what is not stored](data.md#nothing-stored)',
    'Use the address that the operator gave you, or ask for the scope that the message names',
    'Add the name to `MODEL_API_ALLOWED_HOSTS`, the origin to `MODEL_API_ALLOWED_ORIGINS`, or the scope to the [key](clients.md#keys)',
  ],
  not_found: [
    'This path, conversation, job, response or [file](sdks.md#file-ids) does not exist. With `reason` `previous_response_not_found`, a request continues an unknown response',
    'Check the path; below `/v1`, the message names those that exist',
    'Raise `MODEL_API_CONVERSATION_TTL_SECONDS` or `MODEL_API_MAX_CONVERSATIONS`',
  ],
  method_not_allowed: [
    'The path does not support this method. A WebSocket on `/v1/responses` gets 426',
    'Use a method that `Allow` names',
    '–',
  ],
  idempotency_in_progress: [
    'The first request with this `Idempotency-Key` is still running',
    'Wait for `Retry-After` ([retries](api.md#retries))',
    '–',
  ],
  turn_ended: [
    'A message to a [running answer](api.md#messages-to-a-running-answer) came too late, or its job takes none',
    'Send it as the next message',
    '–',
  ],
  payload_too_large: [
    'The body exceeds `MODEL_API_BODY_LIMIT`, perhaps with the [files](sdks.md#file-ids) that it refers to',
    'Send less',
    'Raise the limit, and the limit of the proxy',
  ],
  idempotency_mismatch: [
    'You have sent this `Idempotency-Key` with another request before',
    'Use a new key for each request',
    '–',
  ],
  rate_limited: [
    'This client sent too many requests or wrong keys, or its budget or web searches of the day are used up',
    'Wait for `Retry-After`; see `prompt-relay usage`',
    'Change the [limits](clients.md#keys) or `MODEL_API_RATE_LIMIT_MAX_REQUESTS`. With `wrong_keys` in the log, somebody may be guessing keys. If all clients share one limit, set `MODEL_API_TRUST_PROXY`',
  ],
  concurrency_limited: [
    'The queue is full, or this client has used up its [share](clients.md#shares), or every conversation is in use',
    'Wait for `Retry-After`',
    '`model_api_rejected_total` shows the reason: [PromptRelaySaturated](operations.md#promptrelaysaturated)',
  ],
  cli_error: [
    'The model CLI failed; `reason` says how',
    'See [reasons](#reasons-of-cli_error)',
    '`cli_failed` in the log shows the end of its stderr, without lines of the prompt. `MODEL_API_EXPOSE_STDERR=true` shows it to clients',
  ],
  spawn_error: [
    'The service could not start the model CLI',
    'Tell the operator',
    'See `prompt-relay check`, and the limits for processes and memory',
  ],
  internal_error: ['The service has a defect', 'Tell the operator the `request_id`', 'Report its log record'],
  shutting_down: [
    'The service restarts, or no [account](accounts.md) is left for a waiting job',
    'Wait for `Retry-After`',
    'If jobs were cut, set `MODEL_API_DRAIN_TIMEOUT_SECONDS` to at least `MODEL_API_TIMEOUT`',
  ],
  store_unavailable: [
    'The [store](stores.md) could not save or read the data. The conversation has not changed',
    'Wait for `Retry-After`',
    '`store_down` in the log names the [cause](operations.md#promptrelaystoredown). No restart is needed',
  ],
  wait_too_long: [
    'The job would wait longer for a slot than the request accepts with `Prefer: wait=<seconds>`; the model was not started',
    'Wait for `Retry-After`, or accept a longer wait',
    '–',
  ],
  queue_timeout: [
    'The job waited longer than `MODEL_API_QUEUE_TIMEOUT_MS`; the model was not started',
    'Send the request again later',
    'See [PromptRelayQueueFilling](operations.md#promptrelayqueuefilling)',
  ],
  timeout: [
    'The model took longer than `MODEL_API_TIMEOUT`; its processes were ended',
    'Ask for less, or use a [background job](api.md#background-jobs)',
    'Raise this limit for long answers. If the CLI hangs without output, `MODEL_API_STALL_TIMEOUT` ends jobs sooner',
  ],
};

/** Advice for each reason of a model CLI's failure: what the user does, and what the operator does. */
const reasonAdvice: Readonly<Record<CliReason, readonly [user: string, operator: string]>> = {
  auth: [
    'Tell the operator',
    'Log in as the user of the service, or replace the token, then `prompt-relay recheck`. If other models work, the account may not use this one',
  ],
  quota: ['Wait for `Retry-After`', 'The account has reached its limit; `prompt-relay status` shows when it resets'],
  overloaded: ['Try again later, after `Retry-After` if the answer has it', 'The provider is overloaded'],
  prompt_too_long: ['Send less, or begin a new conversation', '–'],
  model_unknown: [
    'Use a model that the message lists',
    'Check `MODEL_API_DEFAULT_MODEL` and `MODEL_API_ALLOWED_MODELS`. The free models of [OpenCode Zen](clis.md#opencode) must be named there',
  ],
  request_refused: ['The provider refuses the request; correct it as the message says; do not repeat it', '–'],
  output_too_large: ['Ask for less', 'Raise `MODEL_API_MAX_OUTPUT_BYTES`'],
  schema_mismatch: ['Simplify the schema, or use another model', '–'],
  empty_answer: ['Ask again, or in other words', '–'],
  answer_broken: [
    'The connection to the provider was lost, and the text so far is not the answer. Ask again',
    'Check the network (`cli_failed`)',
  ],
  refused: ['The model declines to answer this', '–'],
  host_lost: [
    'The host of the job has died; the job [may have been done](fleet.md#host_lost). Decide whether to ask again',
    'Find out why the host ended',
  ],
  crashed: [
    'Ask again; if it happens again, tell the operator',
    'See `cli_failed` in the log. SIGKILL usually means that [memory ran out](operations.md#a-job-killed-for-memory)',
  ],
  other: ['Read the message', 'The cause is often a new version of the CLI'],
};

type RetryCause = keyof typeof fixedRetries | keyof typeof estimatedRetries;

/** Explanation of the seconds of `Retry-After` for each cause. */
const retryCauses: Readonly<Record<RetryCause, string>> = {
  restart: 'A restart takes a few seconds',
  store: 'The store may be back by then',
  turn_lock: 'The next request gets the lock of the conversation again',
  trial_job: 'One job tests if the account or the model works again',
  conversations: 'Every conversation is in use',
  background_jobs: 'Too many background jobs wait',
  idempotency_keys: 'Too many requests with an `Idempotency-Key` are running',
  body_memory: "This client's bodies or documents use its share of the memory",
  connection: 'Too many requests wait on one connection',
  schemas: 'Too many schemas wait to be checked',
  status_streams: 'Too many clients watch `GET /status/stream`',
  queue: 'Waiting jobs, divided by the slots, times the median duration of the last 50 jobs',
  drain: 'The rest of `MODEL_API_DRAIN_TIMEOUT_SECONDS`; 1 once it has passed',
  budget: 'The rest of the day, week or month (UTC)',
  cli_wait: 'How long the model CLI has to wait (`quota`, `overloaded`)',
  cli_blocked: 'Until the quota resets, or the next trial job',
  rate: 'Until the window of the rate limit ends',
  wrong_keys: 'Until the block of this address ends',
};

/** Returns the rows of the error codes: code, status and explanation. */
export function codeRows(): string[][] {
  return Object.entries(codeTable).map(([code, { status }]) => [
    `\`${code}\``,
    String(status),
    ...codeMeanings[code as PublicCode],
  ]);
}

/** Returns the rows of the reasons of `cli_error`. */
export function reasonRows(): string[][] {
  return Object.entries(reasonAdvice).map(([reason, advice]) => [`\`${reason}\``, ...advice]);
}

/** Returns the rows of the causes of `Retry-After`: cause, seconds and explanation. */
export function retryRows(): string[][] {
  const range = (max: number) => (Number.isFinite(max) ? `1 to ${max}` : '1 or more');
  const seconds = [
    ...Object.entries(fixedRetries).map(([cause, fixed]) => [cause, String(fixed)] as const),
    ...Object.entries(estimatedRetries).map(([cause, max]) => [cause, range(max)] as const),
  ];
  return seconds.map(([cause, text]) => [`\`${cause}\``, text, retryCauses[cause as RetryCause]]);
}

/** Returns the rows of errors in the APIs of other programs: the error of the service, and its forms in two APIs. */
export function sdkErrorRows(): string[][] {
  const codes = publicCodes.map((code) => [`\`${code}\``, new RelayError(code, '')] as const);
  const budget = new RelayError('rate_limited', '', { reason: 'budget' });
  const special = [
    ['`rate_limited` by a [budget](clients.md#budgets)', budget] as const,
    ...cliReasons.map((reason) => [`\`cli_error\`, \`${reason}\``, cliError(reason, '')] as const),
  ].filter(([, { reason }]) => reason !== undefined && reasonTable[reason].kind !== undefined);
  return [...codes, ...special].map(([shown, error]) => [shown, openAiText(error), anthropicText(error)]);
}

function openAiText(error: RelayError): string {
  const { status, body } = openAiErrors(error, '');
  const { type, code } = (body as { readonly error: Readonly<Record<'type' | 'code', string>> }).error;
  return `${status} \`${type}\`, \`${code}\``;
}

function anthropicText(error: RelayError): string {
  const { status, body } = anthropicErrors(error, '');
  return `${status} \`${(body as { readonly error: { readonly type: string } }).error.type}\``;
}
