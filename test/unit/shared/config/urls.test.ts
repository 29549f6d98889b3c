import { readUrlPattern } from '../../../../src/shared/config/urls.js';

describe('The option webhooks of a key', () => {
  it.each([
    ['https://example.org/*', 'https://example.org/'],
    ['https://Example.org:443/hooks/*', 'https://example.org/hooks/'],
    ['http://127.0.0.1:8080/a/../hook*', 'http://127.0.0.1:8080/hook'],
  ])('is a URL that ends with *: %s', (text, start) => {
    expect(readUrlPattern(text)).toBe(start);
  });

  it.each(
    [
      [
        '',
        '*',
        'https://example.org/',
        'https://example.org*',
        'https://*',
        'https://*/hook*',
        'https://*.example.org/*',
      ],
      ['ftp://example.org/*', 'example.org/*', 'https://me@example.org/*', 'https://example.org/?a=*', 'https://a/#*'],
      ['https:///*', 'https://a b/*', 'https://a/*/b*', 'javascript://x/*'],
    ].flat(),
  )('is nothing else: %s', (text) => {
    expect(readUrlPattern(text)).toBeNull();
  });
});
