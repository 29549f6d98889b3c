import { isIP } from 'node:net';
import { type Lookup, limitedLookup } from '../../../../src/features/protocols/limited-lookup.js';
import { until } from '../../../support/basics/until.js';

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

  it('looks up two names at once, each for all who wait for it, while other names wait', async () => {
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const lookup = limitedLookup((name) => {
      begun.push(name);
      return new Promise((resolve) => ends.set(name, () => resolve([{ address: `of ${name}`, family: 4 }])));
    });
    const names = ['slow', 'quick', 'slow', 'waiting'];
    const [first, second, third, fourth] = names.map((name) => found(lookup, name));
    expect(begun).toEqual(['slow', 'quick']);
    ends.get('quick')?.();
    expect(await second).toBe('of quick');
    await until(() => begun.length === 3, 'the lookup of the waiting name');
    ends.get('waiting')?.();
    expect(await fourth).toBe('of waiting');
    ends.get('slow')?.();
    expect(await Promise.all([first, third])).toEqual(['of slow', 'of slow']);
  });

  it('passes the error of a name on, and looks it up again later', async () => {
    const lookup = limitedLookup();
    for (const _ of [1, 2]) expect(await found(lookup, 'a.invalid')).toMatch(/^getaddrinfo /);
  });
});
