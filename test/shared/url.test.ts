import { localUrl } from '../../src/shared/url.js';

it.each([
  ['127.0.0.1', 'http://127.0.0.1:5051'],
  ['relay.example.org', 'http://relay.example.org:5051'],
  ['::1', 'http://[::1]:5051'],
  ['0.0.0.0', 'http://127.0.0.1:5051'],
  ['::', 'http://[::1]:5051'],
])('A service that is bound to %s can be reached from its own machine at %s', (host, url) => {
  expect(localUrl(host, 5051)).toBe(url);
});
