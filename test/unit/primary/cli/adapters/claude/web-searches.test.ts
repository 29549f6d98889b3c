import { WebSearches } from '../../../../../../src/primary/cli/adapters/claude/web-searches.js';

type Decided = Parameters<WebSearches['decide']>[0];

function asks(id: string, input: unknown, name = 'WebSearch'): Decided {
  const request = { subtype: 'can_use_tool', tool_name: name, tool_use_id: id, input } as const;
  return { type: 'control_request', request_id: `r${id}`, request };
}

function resultOf(id: string, result: unknown): string {
  const content = [{ type: 'tool_result', tool_use_id: id }];
  return JSON.stringify({ type: 'user', message: { content }, tool_use_result: result });
}

function searching(maxUses = 2, domains: object = {}): WebSearches {
  const searches = new WebSearches();
  searches.beginTurn({ maxUses, ...domains });
  return searches;
}

/** Returns the input that a reply permits, or the reason of its refusal. */
function permitted(events: ReturnType<WebSearches['decide']>): unknown {
  const [reply] = events ?? [];
  if (reply?.type !== 'reply') return null;
  const { response } = JSON.parse(reply.text).response;
  return response.behavior === 'allow' ? response.updatedInput : response.behavior;
}

describe('The web searches of a claude process', () => {
  it.each<[string, object, object]>([
    ['the domains of the model', {}, { query: 'q', allowed_domains: ['m.org'] }],
    ['those of the client instead', { allowedDomains: ['c.org'] }, { query: 'q', allowed_domains: ['c.org'] }],
    ['those without results', { blockedDomains: ['c.org'] }, { query: 'q', blocked_domains: ['c.org'] }],
  ])('are permitted with %s, and no other field', (_, domains, expected) => {
    const input = { query: 'q', allowed_domains: ['m.org'], dangerous: true };
    expect(permitted(searching(2, domains).decide(asks('a', input)))).toEqual(expected);
  });

  it('are refused beyond the limit, which one call with several searches may reach', () => {
    const searches = searching(2);
    searches.decide(asks('a', { query: 'q' }));
    searches.readLine(resultOf('a', { results: [], searchCount: 2 }));
    const events = searches.decide(asks('b', { query: 'q' }));
    expect(permitted(events)).toBe('deny');
    expect(events?.[1]).toMatchObject({ type: 'search', id: 'b', error: 'max_uses_exceeded', count: 0 });
  });

  it.each([
    ['another tool', asks('a', { query: 'q' }, 'Bash')],
    ['a search without a query', asks('a', {})],
  ])('do not permit %s', (_, request) => {
    expect(searching().decide(request)).toBeNull();
  });

  it('are not permitted in a turn without a search', () => {
    const searches = new WebSearches();
    expect(searches.decide(asks('a', { query: 'q' }))).toBeNull();
    expect(searches.faultOf(['Bash'])).toBeNull();
  });

  it('fail a turn in which the model has another tool, or no search', () => {
    expect(searching().faultOf(['WebSearch'])).toBeNull();
    expect(searching().faultOf(['WebSearch', 'Read'])).toContain('another tool than its web search: Read');
    expect(searching().faultOf([])).toContain('cannot search');
  });

  it('have the pages that were found, in limits', () => {
    const searches = searching();
    searches.decide(asks('a', { query: 'q' }));
    const pages = [
      { title: 'x'.repeat(300), url: 'https://a.org' },
      { title: 'no page', url: 'javascript:alert(1)' },
      ...Array.from({ length: 30 }, (_, index) => ({ title: 'P', url: `http://p.org/${index}` })),
    ];
    const result = searches.readLine(resultOf('a', { results: [{ content: pages }, 'A summary.'], searchCount: 1 }));
    expect(result).toMatchObject({ id: 'a', query: 'q', count: 1 });
    expect(result?.error).toBeUndefined();
    expect(result?.results).toHaveLength(20);
    expect(result?.results[0]?.title).toHaveLength(200);
    expect(searches.readLine(resultOf('a', null))).toBeNull(); // it has its result
  });

  it.each<[string, unknown, string | undefined]>([
    ['an error of the API', { results: ['Web search error: too_many_requests', 'Sorry.'] }, 'too_many_requests'],
    ['a failure of the tool', 'Error: API Error', 'unavailable'],
    ['nothing found', { results: ['Nothing.'] }, undefined],
  ])('report %s', (_, result, error) => {
    const searches = searching();
    searches.decide(asks('a', { query: 'q' }));
    expect(searches.readLine(resultOf('a', result))).toEqual({
      ...{ type: 'search', id: 'a', query: 'q', results: [], count: 1 },
      ...(error !== undefined && { error }),
    });
  });
});
