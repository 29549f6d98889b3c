import type { ClientText } from '../../../../src/shared/client.js';
import { digestOf } from '../../../../src/shared/config/api-keys.js';
import type { WorkerKey } from '../../../../src/shared/ipc/protocol.js';
import { KeyRing, WrongKeys } from '../../../../src/worker/access/keys.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const asKeys = (keys: WorkerKey[]) => ({ keys, personLines: [] });

describe('The API keys of a worker', () => {
  const key = (name: string) => ({
    ...{ name, client: `key ${name}` as const, digest: digestOf(`key of ${name}`), scopes: [], isCapped: false },
    ...{ hasSubclients: false, expiresAt: null },
  });

  it('are found by the key that a client sends, and by nothing else', () => {
    const ring = new KeyRing();
    ring.setFirstKeys(asKeys([key('ada'), key('bob')]));
    expect(['key of bob', 'key of bo', '', digestOf('key of bob')].map((each) => ring.find(each)?.name)).toEqual([
      ...['bob', undefined, undefined, undefined],
    ]);
    ring.replace(asKeys([key('joe')]));
    ring.setFirstKeys(asKeys([key('ada')]));
    expect([ring.find('key of ada'), ring.find('key of joe')?.name]).toEqual([null, 'joe']);
  });

  it('are not required if there is no list of them', () => {
    const ring = new KeyRing();
    expect([ring.isNeeded, ring.find('any')]).toEqual([false, null]);
    ring.replace(asKeys([]));
    expect([ring.isNeeded, ring.find('any')]).toEqual([true, null]);
  });
});

describe('The rights of a person', () => {
  const rights = { scopes: ['ask' as const], isCapped: false, expiresAt: null };

  it('end with the last group, unless the line names the person, and are capped by a group', () => {
    const ring = new KeyRing();
    const groups = [
      { name: 'bio101', isCapped: true, expiresAt: 10 },
      { name: 'bio102', isCapped: false, expiresAt: 20 },
      { name: 'lab', isCapped: false, expiresAt: null },
    ];
    const lines = [
      { name: '*', ...rights },
      { name: 'own', ...rights, expiresAt: 15 },
      { name: 'tutor', ...rights, group: 'bio102' },
    ];
    ring.replace({ keys: [], personLines: lines, groups });
    const endOf = (name: string, ...names: string[]) => {
      const { expiresAt, endsWith = null, isCapped } = ring.rightsOf({ name, groups: names });
      return [expiresAt, endsWith, isCapped];
    };
    expect(endOf('joe', 'bio101')).toEqual([10, 'bio101', true]);
    expect(endOf('joe', 'bio101', 'bio102')).toEqual([20, 'bio102', true]);
    expect(endOf('joe', 'bio102', 'lab')).toEqual([null, null, false]);
    expect(endOf('joe', 'art')).toEqual([null, null, false]);
    expect(endOf('own', 'bio101')).toEqual([15, null, true]);
    expect(endOf('tutor', 'lab')).toEqual([null, null, false]);
    expect(endOf('tutor')).toEqual([20, 'bio102', false]);
    expect(ring.rightsOf({ name: 'tutor', groups: [] })).not.toHaveProperty('group');
  });
});

describe('Wrong API keys', () => {
  it('are counted by the primary', async () => {
    const primary = new FakePrimary({ wrongKey: { blockedSeconds: 0 } });
    await new WrongKeys(primary.asPrimary, new FakeClock()).count('address 192.0.2.1');
    expect(primary.calls).toEqual([{ name: 'wrongKey', request: { caller: 'address 192.0.2.1' } }]);
  });

  function createBlocked() {
    const clock = new FakeClock();
    const primary = new FakePrimary({ wrongKey: { blockedSeconds: 30 } });
    return { clock, primary, wrongKeys: new WrongKeys(primary.asPrimary, clock) };
  }

  const refused = (retryAfterSeconds: number) => ({ code: 'rate_limited', retryAfterSeconds });

  it('are refused after too many, without a call to the primary until the block is over', async () => {
    const { clock, primary, wrongKeys } = createBlocked();
    const count = async (caller: ClientText) => {
      const answer = wrongKeys.count(caller).catch((error: unknown) => error);
      await clock.advance(250);
      return answer;
    };
    expect(await count('key a')).toMatchObject(refused(30));
    await clock.advance(9250);
    expect(await count('key a')).toMatchObject(refused(21));
    expect(primary.calls).toHaveLength(1);
    expect(await count('key b')).toMatchObject(refused(30));
    await clock.advance(20_250);
    expect(await count('key a')).toMatchObject(refused(30));
    expect(primary.calls).toHaveLength(3);
  });

  it('are refused after a quarter of a second, for at most 256 of them at once', async () => {
    const { clock, wrongKeys } = createBlocked();
    let answered = 0;
    const count = () => wrongKeys.count('key a').catch(() => answered++);
    const all = Array.from({ length: 300 }, count);
    await clock.advance(249);
    expect(answered).toBe(44);
    await clock.advance(1);
    await Promise.all(all);
    expect(answered).toBe(300);
    const late = count();
    await clock.advance(249);
    expect(answered).toBe(300);
    await clock.advance(1);
    await late;
  });
});
