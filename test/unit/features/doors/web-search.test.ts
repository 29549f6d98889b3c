import { isWebSearch, webSearchIn } from '../../../../src/features/doors/web-search.js';

describe('The web search of a request', () => {
  it.each<[boolean, string[]]>([
    [true, ['web_search', 'web_search_20250305', 'web_search_20260209', 'web_search_preview', 'web_search_2025_08_26']],
    [false, ['web_fetch_20250910', 'web_searches', 'custom', '']],
  ])('is a type: %s', (expected, types) => {
    expect(types.map(isWebSearch)).toEqual(types.map(() => expected));
  });

  it('has limits, or none', () => {
    expect(webSearchIn({ max_uses: null }, 'tools.0')).toEqual({ path: 'tools.0' });
    const limits = { max_uses: 3, allowed_domains: ['a.org'] };
    expect(webSearchIn(limits, 'tools.0')).toEqual({ path: 'tools.0', maxUses: 3, allowedDomains: ['a.org'] });
  });

  it.each<[object, string]>([
    [{ max_uses: 0.5 }, 'tools.0.max_uses: must be a whole number'],
    [{ blocked_domains: [] }, 'tools.0.blocked_domains: must not be empty'],
    [{ allowed_domains: Array(101).fill('a.org') }, 'tools.0.allowed_domains: must be at most 100 domains'],
    [
      { allowed_domains: ['a.org'], blocked_domains: ['b.org'] },
      'tools.0: must have allowed_domains or blocked_domains',
    ],
  ])('is refused: %j', (sent, message) => {
    expect(() => webSearchIn(sent, 'tools.0')).toThrow(message);
  });
});
