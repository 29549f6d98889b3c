import { failedBy } from '../../../../src/primary/cli/adapters/acp-failure.js';

const googleError = (message: string) => JSON.stringify({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } });

describe('An error of an agent', () => {
  it.each([
    ['auth', { code: -32000, message: 'Authentication required' }],
    ['auth', { code: 401, message: 'no' }],
    ['auth', { code: 400, message: googleError('API key not valid. Please pass a valid API key.') }],
    ['quota', { code: 429, message: 'no' }],
    ['quota', { code: -32603, message: 'Internal error', data: { details: 'You exceeded your current quota' } }],
    ['quota', { code: -32603, message: 'Internal error', data: 'Error: 429 Too Many Requests' }],
    ['overloaded', { code: 503, message: 'no' }],
    ['overloaded', { code: -32603, message: 'no', data: { statusCode: 529 } }],
    ['model_unknown', { code: 500, message: 'models/gemini-9 is not found for API version v1beta' }],
    ['model_unknown', { code: -32602, message: 'Unknown model' }],
    [
      'prompt_too_long',
      {
        code: 400,
        message: googleError('The input token count (9) exceeds the maximum number of tokens allowed (1).'),
      },
    ],
    ['other', { code: 500, message: 'An internal error has occurred.' }],
    ['other', { code: -32603, message: 'Internal error' }],
  ])('is %s', (reason, error) => {
    expect(failedBy(error)).toMatchObject({ type: 'turn-failed', reason });
  });

  it('is told in one printable line, in the words that matter', () => {
    expect(failedBy({ code: 500, message: googleError('It "broke"') }).message).toBe(
      'the model CLI reports: It "broke"',
    );
    expect(failedBy({ code: 1, message: 'a\u001b[31mb\nc' }).message).toBe('the model CLI reports: a[31mb');
    expect(failedBy({ code: 1, message: '' }).message).toBe('the model CLI reports');
    expect(failedBy({ code: 1, message: 'x'.repeat(999) }).message.length).toBeLessThan(400);
  });

  it('of the quota holds for the model, until nobody knows when', () => {
    expect(failedBy({ code: 429, message: '' }).quota).toEqual({ scope: 'model', resetsAt: null });
  });
});
