import { isCallbackOf, readUrlPattern } from '../../../../src/features/webhooks/receiver-url.js';

describe('A callback', () => {
  const start = 'https://example.org/hooks/';

  it.each([
    'https://example.org/hooks/',
    'https://example.org/hooks/a?b=c',
    'HTTPS://EXAMPLE.ORG:443/hooks/../hooks/a',
  ])('may go to a URL with the same scheme, host and port and the start of the path: %s', (url) => {
    expect(isCallbackOf(url, start)).toBe(true);
  });

  it.each([
    'http://example.org/hooks/a',
    'https://example.org:8443/hooks/a',
    'https://example.org/other',
    'https://example.org/hooks/../other',
    'https://example.org/hooks/%2e%2e/other',
    'https://example.org\\@evil.example/hooks/a',
    'https://example.org@evil.example/hooks/a',
    'https://example.org.evil.example/hooks/a',
    'https://me:x@example.org/hooks/a',
    'https://evil.example/?https://example.org/hooks/a',
    'https://example.org./hooks/a',
    'https://169.254.169.254/hooks/a',
    '//example.org/hooks/a',
    'https://example.org/hooks/#a',
    `https://example.org/hooks/${'a'.repeat(2100)}`,
    '',
  ])('may not go anywhere else: %s', (url) => {
    expect(isCallbackOf(url, start)).toBe(false);
    expect(isCallbackOf('https://example.org/hooks/a', null)).toBe(false);
  });
});

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
