import { citationsIn } from '../../../../src/primary/jobs/citations.js';
import type { PlacedSearch } from '../../../../src/shared/job.js';

const url = 'https://a.org/x';

function cited(text: string): string[] {
  const results = [{ title: 'A', url }];
  const search: PlacedSearch = { id: 's', query: 'q', results, count: 1, at: 0, thoughts: 0 };
  return citationsIn(text, [search]).map(({ start, end }) => text.slice(start, end));
}

describe('The citations of an answer', () => {
  it.each<[string, string, string[]]>([
    ['a link of Markdown', `See [A, b](${url}).`, [`[A, b](${url})`]],
    ['a bare URL', `See ${url}.`, [url]],
    ['each of several', `${url} and [A](${url})`, [url, `[A](${url})`]],
    ['no longer URL', `${url}y and ${url}/z`, []],
    ['a URL in brackets alone', `(${url})`, [url]],
    ['nothing else', 'See https://b.org.', []],
  ])('are %s', (_, text, expected) => {
    expect(cited(text)).toEqual(expected);
  });

  it('are at most 100', () => {
    expect(cited(`${url} `.repeat(500))).toHaveLength(100);
  });
});
