import { WrongKeys } from '../../../src/worker/clients/wrong-keys.js';
import { FakeClock } from '../../support/fake-clock.js';
import { FakePrimary } from '../../support/fake-primary.js';

describe('Wrong keys', () => {
  it('are counted by the primary', async () => {
    const primary = new FakePrimary({ wrongKey: { blockedSeconds: 0 } });
    await new WrongKeys(primary.asPrimary, new FakeClock()).count('address 192.0.2.1');
    expect(primary.calls).toEqual([{ name: 'wrongKey', request: { caller: 'address 192.0.2.1' } }]);
  });

  it('are refused where there were too many, without asking again until the block is over', async () => {
    const clock = new FakeClock();
    const primary = new FakePrimary({ wrongKey: { blockedSeconds: 30 } });
    const wrongKeys = new WrongKeys(primary.asPrimary, clock);
    const refused = (retryAfterSeconds: number) => ({ code: 'rate_limited', retryAfterSeconds });
    await expect(wrongKeys.count('a')).rejects.toMatchObject(refused(30));
    await clock.advance(9500);
    await expect(wrongKeys.count('a')).rejects.toMatchObject(refused(21));
    expect(primary.calls).toHaveLength(1);
    await expect(wrongKeys.count('b')).rejects.toMatchObject(refused(30));
    await clock.advance(20_500);
    await expect(wrongKeys.count('a')).rejects.toMatchObject(refused(30));
    expect(primary.calls).toHaveLength(3);
  });
});
