import { Sightings } from '../../../../src/primary/limits/sightings.js';
import { randomNumbers } from '../../../support/random.js';

describe('sightings', () => {
  it('tell nothing of others to one who is alone', () => {
    const sightings = new Sightings();
    expect(sightings.sinceOthersThan('a', 5)).toBe(Number.POSITIVE_INFINITY);
    for (const atMs of [1, 2, 3]) sightings.saw('a', atMs);
    expect(sightings.sinceOthersThan('a', 5)).toBe(Number.POSITIVE_INFINITY);
    expect(sightings.sinceOthersThan('b', 5)).toBe(2);
  });

  it('agree with a list of all that was ever seen', () => {
    const random = randomNumbers(7);
    const sightings = new Sightings();
    const seen = new Map<string, number>();
    for (let nowMs = 0; nowMs < 2000; nowMs++) {
      const client = `client ${Math.floor(random() * 4)}`;
      sightings.saw(client, nowMs);
      seen.set(client, nowMs);
      for (const asked of ['client 0', 'client 1', 'a stranger']) {
        const others = [...seen].filter(([name]) => name !== asked).map(([, atMs]) => atMs);
        expect(sightings.sinceOthersThan(asked, nowMs)).toBe(nowMs - Math.max(...others));
      }
    }
  });
});
