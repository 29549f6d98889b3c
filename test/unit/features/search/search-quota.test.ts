import { SearchQuota } from '../../../../src/features/search/search-quota.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { sameSearchLimit } from '../../../support/basics/limits.js';

const search = { path: 'tools.0' };
const noUsage = { searchesOf: () => 0 };

describe('The quota of web searches', () => {
  it('is refused where the service or the key does not allow searches', () => {
    const off = new SearchQuota(
      'off',
      sameSearchLimit(() => 5),
      noUsage,
      new FakeClock(),
    );
    expect(() => off.check(search, 'key ada')).toThrow('tools.0: the web search is off here (MODEL_API_SEARCH=off)');
    const none = new SearchQuota(
      'native',
      sameSearchLimit(() => null),
      noUsage,
      new FakeClock(),
    );
    expect(() => none.check(search, 'key ada')).toThrow('needs an API key with the option search=on');
  });

  it('counts the searches in the usage and those that running jobs may make, for a key with its sub-clients', () => {
    const used: Record<string, number> = { 'key ada': 4 };
    const usage = { searchesOf: (client: string) => used[client] ?? 0 };
    const quota = new SearchQuota(
      'native',
      sameSearchLimit(() => 16),
      usage,
      new FakeClock(),
    );
    expect(quota.reserve({ ...search, maxUses: 3 }, 'key ada/eve')).toBe(3);
    expect(quota.reserve(search, 'key ada')).toBe(8);
    expect(quota.reserve(search, 'key ada/bob')).toBe(1);
    expect(() => quota.reserve(search, 'key ada')).toThrow('the client has used its 16 web searches of this day');
    expect(quota.reserve(search, 'key bob')).toBe(8);
    quota.settle('key ada/eve', 3);
    used['key ada'] = 14; // one call may search several times
    quota.settle('key ada', 8);
    expect(quota.reserve(search, 'key ada')).toBe(1);
    used['key ada'] = 20;
    expect(() => quota.check(search, 'key ada/eve')).toThrow('has used its 16 web searches');
  });

  it('advises to retry on the next day, after five minutes at most', async () => {
    const clock = new FakeClock();
    const quota = new SearchQuota(
      'native',
      sameSearchLimit(() => 1),
      { searchesOf: () => 1 },
      clock,
    );
    const refused = (retryAfterSeconds: number) =>
      expect(() => quota.check(search, 'key ada')).toThrow(
        expect.objectContaining({ code: 'rate_limited', reason: 'budget', retryAfterSeconds }),
      );
    refused(300);
    await clock.advance(86_400_000 - 60_000);
    refused(60);
  });
});
