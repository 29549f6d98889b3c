import { isIP } from 'node:net';
import { type Lookup, limitedLookup } from '../../../src/shared/limited-lookup.js';

/** Looks up a name; resolves with its address, or with the message of the error. */
function found(lookup: Lookup, name: string, all = false): Promise<unknown> {
  return new Promise((resolve) => {
    lookup(name, { all }, (error, address) => resolve(error === null ? address : error.message));
  });
}

describe('The limited lookup', () => {
  it('finds one address, or all', async () => {
    const lookup = limitedLookup();
    const [one, all] = await Promise.all([found(lookup, 'localhost'), found(lookup, 'localhost', true)]);
    expect([isIP(one as string) > 0, all]).toEqual([
      true,
      expect.arrayContaining([expect.objectContaining({ address: one })]),
    ]);
  });

  it('looks up two names at once, each for all who wait for it', async () => {
    const lookup = limitedLookup();
    const names = ['a.invalid', 'b.invalid', 'a.invalid', 'c.invalid'];
    const errors = await Promise.all(names.map((name) => found(lookup, name)));
    expect(errors[3]).toBe('other names are still being looked up');
    for (const error of errors.slice(0, 3)) expect(error).toMatch(/^getaddrinfo /);
    expect(await found(lookup, 'c.invalid')).toMatch(/^getaddrinfo /);
  });
});
