import { openAiErrors, openAiStreamError } from '../../../../src/features/openai/errors.js';
import {
  type CliReason,
  cliError,
  invalid,
  type PublicCode,
  publicCodes,
  RelayError,
} from '../../../../src/shared/errors.js';

const request = 'invalid_request_error';
const server = 'server_error';

/** Status, type and code of each error in the OpenAI API. */
const byCode: Readonly<Record<PublicCode, readonly [number, string, string]>> = {
  validation_error: [400, request, 'validation_error'],
  unauthorized: [401, 'authentication_error', 'unauthorized'],
  forbidden: [403, 'permission_error', 'forbidden'],
  not_found: [404, request, 'not_found'],
  method_not_allowed: [405, request, 'method_not_allowed'],
  idempotency_in_progress: [409, request, 'idempotency_in_progress'],
  turn_ended: [409, request, 'turn_ended'],
  payload_too_large: [413, request, 'payload_too_large'],
  idempotency_mismatch: [422, request, 'idempotency_mismatch'],
  rate_limited: [429, 'rate_limit_error', 'rate_limited'],
  concurrency_limited: [429, 'rate_limit_error', 'concurrency_limited'],
  cli_error: [500, server, 'cli_error'],
  spawn_error: [500, server, 'spawn_error'],
  internal_error: [500, server, 'internal_error'],
  store_unavailable: [503, server, 'store_unavailable'],
  shutting_down: [503, server, 'shutting_down'],
  wait_too_long: [503, server, 'wait_too_long'],
  queue_timeout: [504, server, 'queue_timeout'],
  timeout: [504, server, 'timeout'],
};

const byReason: readonly (readonly [CliReason, number, string, string])[] = [
  ['overloaded', 503, server, 'overloaded'],
  ['quota', 429, 'insufficient_quota', 'insufficient_quota'],
  ['prompt_too_long', 400, request, 'context_length_exceeded'],
  ['model_unknown', 404, request, 'model_not_found'],
  ['request_refused', 400, request, 'request_refused'],
  ['auth', 500, server, 'auth'],
  ['schema_mismatch', 500, server, 'schema_mismatch'],
  ['crashed', 500, server, 'crashed'],
];

function told(error: RelayError) {
  return openAiErrors(error, 'request 1');
}

describe('An error for an OpenAI SDK', () => {
  it.each(publicCodes)('has the status, the type and the code of that API: %s', (code) => {
    const [status, type, own] = byCode[code];
    const error = { message: 'why', type, code: own, param: null };
    expect(told(new RelayError(code, 'why'))).toEqual({ status, body: { error } });
  });

  it.each(byReason)('has a status and a code that a client can act on: %s', (reason, status, type, code) => {
    const message = expect.stringMatching(/why$/);
    expect(told(cliError(reason, 'why'))).toEqual({ status, body: { error: { message, type, code, param: null } } });
  });

  it('has the words by which LangChain recognises a prompt that is too long', () => {
    const { body } = told(cliError('prompt_too_long', 'why'));
    expect(body).toMatchObject({ error: { message: 'the input exceeds the context window of the model: why' } });
  });

  it('is an internal error if a job was cancelled by mistake', () => {
    expect(told(new RelayError('cancelled', 'gone'))).toMatchObject({
      status: 500,
      body: { error: { type: server, code: 'internal_error' } },
    });
  });

  it.each([
    ['messages.0.content.12.image_url.url', 'messages[0].content[12].image_url.url'],
    ['n', 'n'],
    ['body', null],
    ['Content-Type', null],
  ])('names the field %s in the notation of that API', (path, param) => {
    expect(told(invalid(path, 'is bad')).body).toMatchObject({ error: { message: `${path}: is bad`, param } });
  });

  it('distinguishes an unknown model from a missing one', () => {
    const [unknown, none] = [invalid('model', 'must be one of eliza'), invalid('model', 'must be sent')].map(told);
    expect(unknown).toMatchObject({ status: 404, body: { error: { code: 'model_not_found', param: 'model' } } });
    expect(none).toMatchObject({ status: 400, body: { error: { code: 'validation_error', param: 'model' } } });
  });
});

describe('An error at the end of a stream', () => {
  const stopped = new RelayError('shutting_down', 'why', { retryAfterSeconds: 5 });

  it.each<[string, RelayError, string]>([
    ['a time-out of the model', new RelayError('timeout', 'why'), 'api_error'],
    ['a model CLI that crashes', cliError('crashed', 'why'), 'api_error'],
    ['a defect of the service', new RelayError('internal_error', 'why'), 'api_error'],
    ['an overloaded model', cliError('overloaded', 'why'), server],
    ['a wait that was too long', new RelayError('queue_timeout', 'why'), server],
    ['a drain', stopped, server],
    ['a prompt that is too long', cliError('prompt_too_long', 'why'), request],
  ])('is a server_error only if no model was paid, because clients retry it: %s', (_, error, type) => {
    expect(openAiStreamError(error).error).toEqual({ ...bodyOf(error), type });
  });
});

/** Returns the error object in the body of a response. */
function bodyOf(error: RelayError): object {
  return (told(error).body as { error: object }).error;
}
