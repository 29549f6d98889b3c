import type { Reply } from '../../../../src/worker/http/exchange.js';
import { ignoredFields, ignoredIn, noteDroppedTools } from '../../../../src/worker/jobs/job-request.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`f${index}`, index]));

describe('The ignored fields', () => {
  it('are at most forty, and an invalid name is not shown', () => {
    expect(ignoredFields(many, new Set())).toHaveLength(40);
    expect(ignoredFields({ a: 1, b: null, 'x\r\nSet-Cookie: y': 1, c: 2 }, new Set(['c']))).toEqual([
      'a',
      '(odd name)',
    ]);
  });

  it('are listed once for all parts of a list, without empty ones', () => {
    const parts = [{ a: 1, known: 1 }, null, { a: 2, b: {}, c: [], d: null, 'e f': 1 }, undefined];
    expect(ignoredIn('messages', parts, new Set(['known']))).toEqual([
      'messages.a',
      'messages.b',
      'messages.(odd name)',
    ]);
    expect(ignoredIn('messages', [many, many], new Set()).length).toBe(40);
  });
});

describe('Omitted tools', () => {
  function noted(droppedTools: readonly string[], route = '/v1/messages') {
    const primary = new FakePrimary({ toolsIgnored: {} });
    const res = { locals: { client: 'key ada', route } } as unknown as Reply;
    noteDroppedTools(primary.asPrimary, res, { droppedTools });
    return primary.calls;
  }

  it('are reported to the primary, with the client and the API', () => {
    const call = { name: 'toolsIgnored', request: { client: 'key ada', route: '/v1/messages' } };
    expect(noted(['web_search'])).toEqual([call]);
    expect([noted([]), noted(['web_search'], '/ask')]).toEqual([[], []]);
  });

  it('cause no error if the primary has gone', async () => {
    const primary = new FakePrimary({ toolsIgnored: new Error('gone') });
    const res = { locals: { client: 'a', route: '/v1/responses' } } as unknown as Reply;
    expect(() => noteDroppedTools(primary.asPrimary, res, { droppedTools: ['web_search'] })).not.toThrow();
    await new Promise(setImmediate); // an unhandled rejection would end the test here
  });
});
