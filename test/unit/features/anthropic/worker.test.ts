import { anthropicErrors } from '../../../../src/features/anthropic/errors.js';
import { anthropicDoor, createPart } from '../../../../src/features/anthropic/worker.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { WorkerCore } from '../../../../src/worker/features/feature.js';

const names = ['mayAsk', 'mayCall', 'needsService', 'namesUser', 'capped', 'once'];
const guards = Object.fromEntries(names.map((name) => [name, name]));
const { routes } = createPart({ guards, jobs: {} } as unknown as WorkerCore);
const version = { 'anthropic-version': '2023-06-01' };

describe('Errors in the form of Anthropic’s API', () => {
  const isInForm = (path: string, headers = {}) => anthropicDoor.errorFormOf({ path, headers }) !== null;

  it('are sent at the paths of messages, and to a client that names its version', () => {
    expect([isInForm('/v1/messages'), isInForm('/v1/messages/batches')]).toEqual([true, true]);
    expect([isInForm('/v1/models', version), isInForm('/v1/files', version)]).toEqual([true, true]);
    expect([isInForm('/v1/models'), isInForm('/v1/files'), isInForm('/messages')]).toEqual([false, false, false]);
  });

  it.each([
    ['overloaded', 529, 'overloaded_error'],
    ['quota', 429, 'rate_limit_error'],
    ['prompt_too_long', 400, 'invalid_request_error'],
    ['model_unknown', 404, 'not_found_error'],
    ['schema_mismatch', 500, 'api_error'],
  ])('name the failure of a model: %s', (reason, status, type) => {
    const error = new RelayError('cli_error', 'why', { reason: reason as never });
    expect(anthropicErrors(error, 'r')).toEqual({
      status,
      body: { type: 'error', error: { type, message: 'why' }, request_id: 'r' },
    });
  });
});

it('Only requests that run models have the checks of a job', () => {
  const checksOf = (method: 'post') =>
    Object.fromEntries(
      routes.flatMap(({ route, [method]: steps }) => (steps === undefined ? [] : [[route, steps.slice(0, -1)]])),
    );
  const beforeJob = ['mayAsk', 'needsService', 'namesUser', 'capped', 'once'];
  expect(checksOf('post')).toEqual({
    '/v1/messages': beforeJob,
    '/v1/messages/count_tokens': ['mayAsk', 'namesUser', 'capped'],
  });
});
