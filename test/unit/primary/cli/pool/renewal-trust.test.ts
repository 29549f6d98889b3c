import { RenewalTrust } from '../../../../../src/primary/cli/pool/renewal-trust.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';

const hourMs = 3_600_000;

it('Three failed renewals of a client in a row pause its renewals for an hour, and those of no other client', async () => {
  const clock = new FakeClock();
  const trust = new RenewalTrust(clock);
  const begun = [false, true, false, false, false].map((isProven) => trust.record('ada', isProven));
  expect(begun).toEqual([false, false, false, false, true]);
  expect([trust.isPausedFor('ada'), trust.isPausedFor('bob')]).toEqual([true, false]);
  await clock.advance(hourMs - 1);
  expect(trust.isPausedFor('ada')).toBe(true);
  await clock.advance(1);
  expect(trust.isPausedFor('ada')).toBe(false);
});

it('The first failure after a pause begins the next one, and a success ends the count', async () => {
  const clock = new FakeClock();
  const trust = new RenewalTrust(clock);
  for (let count = 0; count < 3; count++) trust.record('ada', false);
  await clock.advance(hourMs);
  expect([trust.record('ada', false), trust.isPausedFor('ada')]).toEqual([true, true]);
  trust.record('ada', true);
  expect(trust.isPausedFor('ada')).toBe(false);
});
