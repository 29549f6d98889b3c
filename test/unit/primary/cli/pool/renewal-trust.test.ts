import { RenewalTrust } from '../../../../../src/primary/cli/pool/renewal-trust.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';

const hourMs = 3_600_000;

function trustIn(clock: FakeClock) {
  const pauses: string[] = [];
  const trust = new RenewalTrust('renewal', clock, (client, kind) => void pauses.push(`${kind} ${client}`));
  return { trust, pauses };
}

it('The first failure after a pause begins the next one, and a success ends the count', async () => {
  const clock = new FakeClock();
  const { trust, pauses } = trustIn(clock);
  for (let count = 0; count < 4; count++) trust.record('key ada', 'late');
  await clock.advance(hourMs);
  trust.record('key ada', 'late');
  expect([trust.isPausedFor('key ada'), pauses.length]).toEqual([true, 2]);
  trust.record('key ada', 'proven');
  expect(trust.isPausedFor('key ada')).toBe(false);
});

it('Failures are shown for an hour, with the number of clients, the last reason and the end of the last pause', async () => {
  const clock = new FakeClock();
  const { trust } = trustIn(clock);
  expect(trust.fault).toBeNull();
  trust.record('key ada', 'late');
  const one = { kind: 'renewal', reason: 'late', failingClients: 1, pausedClients: 0, until: null };
  expect(trust.fault).toEqual(one);
  await clock.advance(1000);
  for (let count = 0; count < 3; count++) trust.record('key bob', 'unproven');
  const until = clock.now() + hourMs;
  expect(trust.fault).toEqual({ ...one, reason: 'unproven', failingClients: 2, pausedClients: 1, until });
  trust.record('key ada', 'proven');
  expect(trust.fault).toMatchObject({ failingClients: 1 });
  await clock.advance(hourMs);
  expect(trust.fault).toBeNull();
});
