import { SearchQuota } from '../../../../src/primary/access/search-quota.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const search = { path: 'tools.0' };

describe('The quota of web searches', () => {
  it('is refused where the service or the key does not allow searches', () => {
    const off = new SearchQuota('off', () => 5, new FakeClock());
    expect(() => off.check(search, 'key ada')).toThrow('tools.0: the web search is off here (MODEL_API_SEARCH=off)');
    const none = new SearchQuota('native', () => null, new FakeClock());
    expect(() => none.check(search, 'key ada')).toThrow('needs an API key with the option search=on');
  });

  it('counts reserved searches, and then those that were made, for a key with its sub-clients', () => {
    const quota = new SearchQuota('native', () => 12, new FakeClock());
    expect(quota.reserve({ ...search, maxUses: 3 }, 'key ada/eve')).toBe(3);
    expect(quota.reserve(search, 'key ada')).toBe(8);
    expect(quota.reserve(search, 'key ada/bob')).toBe(1);
    expect(() => quota.reserve(search, 'key ada')).toThrow('the client has used its 12 web searches of this day');
    expect(quota.reserve(search, 'key bob')).toBe(8);
    quota.settle('key ada/eve', 3, 0);
    quota.settle('key ada', 8, 10); // one call may search several times
    expect(quota.reserve(search, 'key ada')).toBe(1);
  });

  it('begins again with each day', async () => {
    const clock = new FakeClock();
    const quota = new SearchQuota('native', () => 1, clock);
    quota.reserve(search, 'key ada');
    await clock.advance(86_400_000);
    expect(quota.reserve(search, 'key ada')).toBe(1);
  });
});
