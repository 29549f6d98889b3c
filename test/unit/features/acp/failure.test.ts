import { failedBy } from '../../../../src/features/acp/opening.js';
import type { RpcError } from '../../../../src/features/protocols/json-rpc.js';
import type { Turn } from '../../../../src/primary/cli/contract/adapter.js';
import { turnOf } from '../../../support/agents/acp-lines.js';

const googleError = (message: string) => JSON.stringify({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } });

const failedOf = (error: RpcError, asked: Turn | null = null) => failedBy(error, 'asked', asked);

describe('An error of an agent', () => {
  it.each([
    ['auth', { code: -32000, message: 'Authentication required' }],
    ['auth', { code: 401, message: 'no' }],
    ['auth', { code: 400, message: googleError('User location is not supported for the API use.') }],
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
  ])('is mapped to %s', (reason, error) => {
    expect(failedOf(error)).toMatchObject({ type: 'turn-failed', reason });
  });

  it('is reported in one printable line, with the essential words', () => {
    expect(failedOf({ code: 500, message: googleError('It "broke"') }).message).toBe(
      'the model CLI reports: It "broke"',
    );
    expect(failedOf({ code: 1, message: 'a\u001b[31mb\nc' }).message).toBe('the model CLI reports: a[31mb');
    expect(failedOf({ code: 1, message: '' }).message).toBe('the model CLI reports');
    expect(failedOf({ code: 1, message: 'x'.repeat(999) }).message.length).toBeLessThan(400);
  });

  it('about the quota applies to the model, without a reset time, if it has a code', () => {
    expect(failedOf({ code: 429, message: '' }).quota).toEqual({ scope: 'model', resetsAt: null });
    const inWords = failedOf({ code: 1, message: 'Error: 429 Too Many Requests' });
    expect([inWords.reason, inWords.quota]).toEqual(['quota', undefined]);
  });

  it.each<[string, string, 'account' | undefined, RpcError, Partial<Turn>]>([
    ['a code', 'auth', 'account', { code: 401, message: 'no' }, {}],
    ['a code beside it', 'auth', 'account', { code: 500, message: 'no', data: { status: 401 } }, { model: 'big' }],
    ['words', 'auth', undefined, { code: 500, message: 'API key not valid' }, {}],
    ['403, which may be about the request', 'auth', undefined, { code: 403, message: 'no' }, {}],
    ['what agents also say of a request', 'auth', undefined, { code: -32000, message: 'no' }, {}],
    ['the account of one provider', 'auth', undefined, { code: 401, message: 'no' }, { model: 'openai/gpt' }],
  ])('is about the account only if its code indicates the account: %s', (_, reason, scope, error, turn) => {
    const failed = failedOf(error, turnOf('Hello', turn));
    expect([failed.reason, failed.scope]).toEqual([reason, scope]);
  });

  it.each<[string, RpcError, Partial<Turn>]>([
    ['the model', { code: -32602, message: 'model not found: api-key' }, { model: 'api-key' }],
    ['the model in capitals', { code: -32602, message: 'Model API-KEY not found' }, { model: 'api-key' }],
    ['the model as a number', { code: 500, message: 'unknown model 401' }, { model: '401' }],
    ['the model with another sign', { code: 500, message: 'no model named rate_limit' }, { model: 'rate.limit' }],
    ['the model and what comes after it', { code: 500, message: 'model catalog invalid' }, { model: 'catalog' }],
    ['the whole prompt', { code: 500, message: 'I do not read "quota"' }, { text: 'quota' }],
    ['a part of the prompt', { code: 500, message: 'near "my API Key is": no' }, { text: 'Say: my api-key is red' }],
    ['the prompt, escaped', { code: 500, message: 'bad: {\\"say\\":\\"log in\\"}' }, { text: '{"say":"log in"}' }],
    ['the system text', { code: 500, message: 'too many requests, it says' }, { system: 'No: too many requests.' }],
    ['the schema', { code: 500, message: 'no such type: billing' }, { schema: '{"type":"billing"}' }],
    ['a message before', { code: 500, message: 'you said log in' }, { history: [{ role: 'user', text: 'Log in!' }] }],
    ['what it heard before', { code: 500, message: 'you said log in' }, { heard: [{ role: 'user', text: 'log-in' }] }],
    ['what nobody can compare', { code: 500, message: 'API key' }, { text: 'x'.repeat(600_000) }],
  ])('says nothing about the account if its words come from the request: %s', (_, error, turn) => {
    const { reason } = failedOf(error, turnOf('Hello', turn));
    expect(['other', 'model_unknown']).toContain(reason);
  });

  it('is classified by its words, whatever the rest of the request contains', () => {
    const long = `${'word '.repeat(50_000)} quota`;
    expect(failedOf({ code: 500, message: 'API key not valid' }, turnOf(long, { model: 'big' })).reason).toBe('auth');
    expect(failedOf({ code: 500, message: 'model not found: quota' }, turnOf('x', { model: 'quota' })).reason).toBe(
      'model_unknown',
    );
  });

  it('without a code is an unknown model while the model is being selected', () => {
    const choosing = (error: RpcError) => failedBy(error, 'choosing', turnOf('Hello', { model: 'big' }));
    expect(choosing({ code: -32603, message: 'Unauthorized: 401' })).toMatchObject({ reason: 'model_unknown' });
    expect(choosing({ code: 401, message: 'no' })).toEqual(expect.not.objectContaining({ scope: 'account' }));
  });
});
