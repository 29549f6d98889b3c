import { readSearchResult } from '../../../../src/features/search/search-result.js';
import { processorMs } from '../../../support/processes/processor-time.js';

const page = { title: 'Rain', url: 'https://a.org/rain' };

function ofText(text: string) {
  return readSearchResult({ content: [{ type: 'text', text }] });
}

/** Makes an answer of some texts. */
function textsOf(text: string, count: number): object {
  return { content: Array.from({ length: count }, () => ({ type: 'text', text })) };
}

describe('A result of a search', () => {
  it.each<[string, object]>([
    ['Markdown', { content: [{ type: 'text', text: '1. [Rain](https://a.org/rain): wet.' }] }],
    ['lines', { content: [{ type: 'text', text: 'Title: Rain\nURL: https://a.org/rain\nText: wet' }] }],
    ['a list', { content: [{ type: 'text', text: '1. **Title**: Rain\n   https://a.org/rain.' }] }],
    ['JSON', { content: [{ type: 'text', text: JSON.stringify({ web: { results: [{ ...page, n: 1 }] } }) }] }],
    ['structured content', { content: [], structuredContent: { results: [{ name: 'Rain', link: page.url }] } }],
    ['a resource link', { content: [{ type: 'resource_link', uri: page.url, name: 'rain', title: 'Rain' }] }],
    ['a resource', { content: [{ type: 'resource', resource: { uri: 'x:', text: '[Rain](https://a.org/rain)' } }] }],
  ])('has the links of %s', (_, answer) => {
    expect(readSearchResult(answer)).toMatchObject({ links: [page], isError: false });
  });

  it('has the URL as the title of a link without one, and each page once', () => {
    const text = 'See https://a.org/x, https://a.org/x and (https://a.org/y?b=c#d).';
    const urls = ['https://a.org/x', 'https://a.org/y?b=c#d'];
    expect(ofText(text)?.links).toEqual(urls.map((url) => ({ title: url, url })));
  });

  it.each([
    'javascript:alert(1)',
    'file:///etc/passwd',
    'https://',
    `https://a.org/${'x'.repeat(1000)}`,
    'https://a.org/\u0000',
    'https://a b',
  ])('has no link to %j', (url) => {
    expect(
      readSearchResult({ content: [{ type: 'text', text: JSON.stringify([{ title: 'x', url }]) }] })?.links,
    ).toEqual([]);
  });

  it('is bounded, whatever the server sends', () => {
    const many = Array.from({ length: 1000 }, (_, at) => ({ title: 't'.repeat(1000), url: `https://a.org/${at}` }));
    const found = ofText(JSON.stringify(many));
    expect([found?.links.length, found?.links[0]?.title.length]).toEqual([20, 200]);
    expect(found?.text.length).toBeLessThan(33_000);
    expect(ofText('\u{1f327}'.repeat(40_000))?.text).toMatch(/\u{1f327}\n\(The rest of the results is left out\.\)$/u);
    const deep = `${'['.repeat(100)}${JSON.stringify(page)}${']'.repeat(100)}`;
    expect(ofText(deep)?.links).toEqual([]);
    expect(ofText(`${'x\n'.repeat(40_000)}${page.url}`)?.links).toEqual([]); // the model does not get this line
    const pieces = Array.from({ length: 1000 }, (_, at) => ({ type: 'text', text: `${at}` }));
    expect(readSearchResult({ content: pieces })?.text).toMatch(/\n199$/);
    expect(ofText('a\0\ud800b')?.text).toBe('a\ufffd\ufffdb');
  });

  it.each<[string, unknown]>([
    ['many objects', { structuredContent: Array.from({ length: 60_000 }, () => ({ url: 'x', link: 1 })) }],
    [
      'an object with many fields',
      { structuredContent: Object.fromEntries(Array.from({ length: 9e4 }, (_, at) => [at, {}])) },
    ],
    ['half links', textsOf('[a'.repeat(5000), 100)],
    ['labels', textsOf(`[${'a'.repeat(299)}`.repeat(3000), 1)],
    ['links without labels', textsOf(`](http://a${'x'.repeat(300)}`.repeat(30), 100)],
    ['JSON of brackets', textsOf('['.repeat(5000), 200)],
    ['JSON of empty lists', textsOf(`[${'[],'.repeat(300_000)}[]]`, 1)],
    ['titles', textsOf('1. ****************title*****title\n'.repeat(300), 100)],
  ])('is read quickly: %s', (_, part) => {
    readSearchResult({ content: [{ type: 'text', text: 'a' }] });
    const begunMs = processorMs();
    readSearchResult({ content: [{ type: 'text', text: 'a' }], ...Object(part) });
    expect(processorMs() - begunMs).toBeLessThan(60);
  });

  it.each([undefined, null, 7, [], {}, { content: 'x' }, { content: [null, 7, { type: 'text', text: 7 }] }])(
    'is null without a text: %j',
    (answer) => {
      expect(readSearchResult(answer)).toBeNull();
    },
  );
});
