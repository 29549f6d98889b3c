import { exitCodes, openAiError, ServiceError } from '../../../../src/command/base/errors.js';
import type { ErrorBody } from '../../../../src/shared/api/error.js';

function told(body: Partial<ErrorBody>): string {
  return new ServiceError({ error: 'internal_error', message: 'm', request_id: 'r', ...body }).message;
}

describe('An error of the service', () => {
  it.each<[Partial<ErrorBody>, string]>([
    [{ error: 'unauthorized' }, '--key'],
    [{ error: 'cli_error', reason: 'auth' }, 'prompt-relay check'],
    [{ error: 'spawn_error' }, 'prompt-relay check'],
    [{ error: 'cli_error', reason: 'model_unknown' }, 'prompt-relay models'],
    [{ error: 'validation_error', details: [{ path: 'model', message: 'm' }] }, 'prompt-relay models'],
    [{ error: 'concurrency_limited', retry_after_seconds: 7 }, 'try again in 7 s'],
    [{ error: 'internal_error' }, '(request r)'],
  ])('suggests a remedy: %j', (body, way) => {
    expect(told(body)).toContain(way);
  });

  it('is a refusal in the format of OpenAI, too, if nothing of the client is stored', () => {
    const body = openAiError({ error: { message: 'm', type: 'invalid_request_error', code: 'storing_is_off' } });
    expect(body).toMatchObject({ error: 'forbidden', reason: 'storing_is_off' });
    expect(new ServiceError(body as ErrorBody).exitCode).toBe(exitCodes.notAllowed);
  });

  it('does not repeat what its message already explains', () => {
    expect(told({ error: 'unauthorized', message: 'set MODEL_API_KEY' })).toBe('unauthorized: set MODEL_API_KEY');
    expect(told({ error: 'validation_error' })).toBe('validation_error: m');
  });
});
