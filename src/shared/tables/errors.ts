/** Kinds of errors that the APIs of other programs tell apart. Each API has its own words for them. */
export type ErrorKind =
  | 'request'
  | 'authentication'
  | 'permission'
  | 'not_found'
  | 'too_large'
  | 'rate'
  | 'quota'
  | 'overloaded'
  | 'timeout'
  | 'server';

interface CodeFacts {
  readonly status: number;
  readonly kind: ErrorKind;
  /** Name of the exit code of the command. */
  readonly exit: string;
  /** Whether the same request may succeed when it is sent again. */
  readonly mayPass: boolean;
  /** Title of a notice in the console, above the message. */
  readonly title: string;
}

/** All codes of error bodies. The public contract has no other codes. docs/errors.md explains them. */
export const codeTable = {
  validation_error: { status: 400, kind: 'request', exit: 'refused', mayPass: false, title: 'Invalid request' },
  unauthorized: { status: 401, kind: 'authentication', exit: 'notAllowed', mayPass: true, title: 'API key required' },
  forbidden: { status: 403, kind: 'permission', exit: 'notAllowed', mayPass: false, title: 'Not allowed' },
  not_found: { status: 404, kind: 'not_found', exit: 'refused', mayPass: false, title: 'Not found' },
  method_not_allowed: { status: 405, kind: 'request', exit: 'protocol', mayPass: false, title: 'Failed' },
  idempotency_in_progress: {
    status: 409,
    kind: 'request',
    exit: 'tryLater',
    mayPass: true,
    title: 'This request is already running',
  },
  turn_ended: {
    status: 409,
    kind: 'request',
    exit: 'refused',
    mayPass: false,
    title: 'The answer has ended',
  },
  payload_too_large: { status: 413, kind: 'too_large', exit: 'refused', mayPass: false, title: 'Too large to send' },
  idempotency_mismatch: { status: 422, kind: 'request', exit: 'refused', mayPass: false, title: 'Failed' },
  rate_limited: { status: 429, kind: 'rate', exit: 'tryLater', mayPass: true, title: 'Too many requests' },
  concurrency_limited: { status: 429, kind: 'rate', exit: 'tryLater', mayPass: true, title: 'The queue is full' },
  cli_error: { status: 500, kind: 'server', exit: 'failed', mayPass: true, title: 'The model did not answer' },
  spawn_error: {
    status: 500,
    kind: 'server',
    exit: 'unavailable',
    mayPass: true,
    title: 'The model CLI does not start',
  },
  internal_error: { status: 500, kind: 'server', exit: 'internal', mayPass: true, title: 'Internal error' },
  shutting_down: {
    status: 503,
    kind: 'server',
    exit: 'tryLater',
    mayPass: true,
    title: 'The service is shutting down',
  },
  store_unavailable: {
    status: 503,
    kind: 'server',
    exit: 'tryLater',
    mayPass: true,
    title: 'The service cannot save this',
  },
  wait_too_long: {
    status: 503,
    kind: 'server',
    exit: 'tryLater',
    mayPass: true,
    title: 'The wait would be too long',
  },
  queue_timeout: {
    status: 504,
    kind: 'timeout',
    exit: 'tryLater',
    mayPass: true,
    title: 'Waited too long in the queue',
  },
  timeout: { status: 504, kind: 'timeout', exit: 'failed', mayPass: true, title: 'The answer took too long' },
} as const satisfies Readonly<Record<string, CodeFacts>>;

interface ReasonFacts {
  /** Kind in the APIs of other programs; omitted if they report only that the model failed. */
  readonly kind?: 'request' | 'not_found' | 'quota' | 'overloaded';
  /** Code for the reason in the APIs of other programs, if it differs from the reason. */
  readonly foreignCode?: string;
  /** Whether the same request may succeed when it is sent again. Omitted if it may. */
  readonly mayPass?: false;
  /** Advice of the command: to list the models, or to run `check` on the machine of the service. */
  readonly advice?: 'models' | 'check';
}

/** Reasons of a model CLI's failure, which is a `cli_error`. docs/errors.md explains them. */
export const cliReasonTable = {
  auth: { advice: 'check' },
  quota: { kind: 'quota', foreignCode: 'insufficient_quota' },
  overloaded: { kind: 'overloaded' },
  prompt_too_long: { kind: 'request', foreignCode: 'context_length_exceeded', mayPass: false },
  model_unknown: { kind: 'not_found', foreignCode: 'model_not_found', mayPass: false, advice: 'models' },
  request_refused: { kind: 'request' },
  output_too_large: {},
  schema_mismatch: {},
  empty_answer: {},
  answer_broken: {},
  refused: {},
  host_lost: {},
  crashed: {},
  other: {},
} as const satisfies Readonly<Record<string, ReasonFacts>>;

/** Reasons of other errors: of `validation_error`, `forbidden`, `not_found` and `rate_limited`. */
const otherReasonTable = {
  conversation_unknown: {},
  previous_response_not_found: {},
  budget: { kind: 'quota', foreignCode: 'insufficient_quota' },
  storing_is_off: { mayPass: false },
} as const satisfies Readonly<Record<string, ReasonFacts>>;

type Reason = keyof typeof cliReasonTable | keyof typeof otherReasonTable;

/** All values of `reason` in error bodies. */
export const reasonTable: Readonly<Record<Reason, ReasonFacts>> = { ...cliReasonTable, ...otherReasonTable };
