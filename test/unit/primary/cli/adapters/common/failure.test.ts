import {
  type FailureReport,
  type FailureTable,
  failedTurn,
  wordsOfApi,
} from '../../../../../../src/primary/cli/adapters/common/failure.js';
import type { TurnFailed } from '../../../../../../src/primary/cli/contract/adapter.js';
import { turnOf } from '../../../../../support/agents/acp-lines.js';

const table: FailureTable = {
  codes: [
    ['why', 'no-login', 'auth', 'account'],
    ['why', 'forbidden', 'auth'],
    ['why', 'empty', 'quota'],
  ],
  words: [
    [/rate.?limit/i, 'quota'],
    [/api.?key/i, 'auth'],
    [/model.{0,20}not found/i, 'model_unknown'],
  ],
};

function failed(report: Partial<FailureReport>): TurnFailed {
  const quota = { scope: 'account', resetsAt: 1 } as const;
  return failedTurn(table, { codes: [], words: '', turn: null, isOfRequest: false, quota, ...report });
}

describe('The words of a failure', () => {
  it('are cut before they are searched, because they may contain text of a client', () => {
    const { message } = failed({ words: 'a.'.repeat(500_000) });
    expect(message).toHaveLength('the model CLI reports: '.length + 300);
  });

  it.each([
    [
      'Configuration error in /home/relay/.claude.json: JSON Parse error',
      'Configuration error in …/.claude.json: JSON Parse error',
    ],
    ["ENOENT: open '/root/.codex/auth.json'", "ENOENT: open '…/auth.json'"],
    ['see (/srv/x/y/z) and "/opt/a/b"', 'see (…/z) and "…/b"'],
    ['404 from https://api.anthropic.com/v1/messages', '404 from https://api.anthropic.com/v1/messages'],
    ['no route POST /v1/chat/completions or /api/chat', 'no route POST /v1/chat/completions or /api/chat'],
    ['tokens/minute and input/output', 'tokens/minute and input/output'],
    ['use /login', 'use /login'],
  ])('reveal no folder of the host: %s', (words, shown) => {
    expect(failed({ words }).message).toBe(`the model CLI reports: ${shown}`);
  });
});

describe('The codes of a failure', () => {
  it('determine its reason, the most specific one first, whatever the words say', () => {
    const codes = [
      ['why', 'unheard of'],
      ['status', 503],
      ['why', 'no-login'],
      ['status', null],
    ] as const;
    expect(failed({ codes, words: 'no API key' })).toEqual({
      type: 'turn-failed',
      reason: 'overloaded',
      message: 'the model CLI reports: no API key',
    });
    expect(failed({ codes: [['other', 'no-login']] }).reason).toBe('other');
  });

  it.each<[string, Partial<FailureReport>, object]>([
    ['a code of the program', { codes: [['why', 'no-login']] }, { scope: 'account' }],
    ['the status 401', { codes: [['status', 401]] }, { scope: 'account' }],
    ['a code that says what is used up', { codes: [['why', 'empty']] }, { quota: { scope: 'account', resetsAt: 1 } }],
  ])('block an account: %s', (_, report, closed) => {
    expect(failed(report)).toMatchObject(closed);
  });

  it.each<[string, Partial<FailureReport>]>([
    ['a code that may be about the request', { codes: [['why', 'forbidden']] }],
    ['the status 403', { codes: [['status', 403]] }],
    ['a code that the request has brought about', { codes: [['why', 'no-login']], isOfRequest: true }],
    ['words of a login', { words: 'no API key' }],
    ['words of a limit', { words: 'rate limit' }],
    ['what is so without a code', { uncoded: 'auth' }],
  ])('block no account without such a code: %s', (_, report) => {
    const { reason, scope, quota } = failed(report);
    expect(['auth', 'quota']).toContain(reason);
    expect([scope, quota]).toEqual([undefined, undefined]);
  });
});

describe('The words of a failure without a code', () => {
  const reasonOf = (words: string, asked: FailureReport['turn'] = null) => failed({ words, turn: asked }).reason;

  it('determine the reason by the first matching row', () => {
    expect(reasonOf('a rate limit of this API key')).toBe('quota');
    expect(reasonOf('it broke')).toBe('other');
    expect(failed({ words: 'it broke', hidden: 'it broke: no API key' }).reason).toBe('auth');
    expect(failed({ words: 'no API key', uncoded: 'model_unknown' }).reason).toBe('model_unknown');
  });

  it('are ignored if they come from the request', () => {
    expect(reasonOf('no model named API-KEY', turnOf('Hi', { model: 'api-key' }))).toBe('other');
    expect(reasonOf('near "my API key is"', turnOf('Say: my api-key is red'))).toBe('other');
    expect(reasonOf('API key', turnOf('x'.repeat(600_000)))).toBe('other');
  });

  it('that can only concern the request are evaluated in any case', () => {
    expect(reasonOf('the model was not found', turnOf('Why is a model not found?'))).toBe('model_unknown');
  });

  it('are those of the API if the program passes on its whole answer', () => {
    expect(wordsOfApi('{"error":{"message":"It broke"}}')).toBe('It broke');
    expect(['{"error":"x"}', 'It broke'].map(wordsOfApi)).toEqual(['{"error":"x"}', 'It broke']);
  });
});
