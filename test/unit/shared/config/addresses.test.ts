import { localUrl, portFaults } from '../../../../src/shared/config/addresses.js';

it.each([
  ['127.0.0.1', 'http://127.0.0.1:5051'],
  ['relay.example.org', 'http://relay.example.org:5051'],
  ['::1', 'http://[::1]:5051'],
  ['0.0.0.0', 'http://127.0.0.1:5051'],
  ['::', 'http://[::1]:5051'],
])('A service bound to %s is reachable from its machine at %s', (host, url) => {
  expect(localUrl(host, 5051)).toBe(url);
});

it('The ports must differ', () => {
  const faults = (main: number, ...numbers: (number | null)[]) =>
    portFaults(
      { MODEL_API_PORT: main },
      numbers.map((number, index) => ({ variable: `MODEL_API_PORT_${index}`, number })),
    );
  expect(faults(5052, 5052)).toEqual(['MODEL_API_PORT_0: 5052 is MODEL_API_PORT: it needs a different port']);
  expect(faults(5051, 5052, 5052)).toEqual(['MODEL_API_PORT_1: 5052 is MODEL_API_PORT_0: it needs a different port']);
  for (const fine of [faults(5051, 5052), faults(0, 0), faults(5051, null, null), portFaults({})])
    expect(fine).toEqual([]);
});
