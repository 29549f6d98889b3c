import { StoreFault } from '../../../../src/primary/store/contract/store.js';
import { asConfigFault, checkEngine, openStore } from '../../../../src/primary/store/open.js';
import { ConfigFault } from '../../../../src/shared/config/config.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

function hung(): never {
  throw new Error('nothing hangs');
}

describe('The store of a service', () => {
  it('is in memory by default', async () => {
    expect(await openStore({ kind: 'memory' }, [], new FakeClock(), hung)).toMatchObject({
      kind: 'memory',
      isUp: true,
    });
  });

  it('causes a configuration fault if it cannot be opened, also on an old Node', async () => {
    const opened = openStore({ kind: 'sqlite', path: '/proc/version/store.db' }, [], new FakeClock(), hung);
    await expect(opened).rejects.toBeInstanceOf(ConfigFault);
    await expect(opened).rejects.toThrow(
      /^MODEL_API_STORE: (sqlite: needs Node\.js 22\.13 or later, and this is v20|\/proc\/version\/store\.db cannot be made)/,
    );
  });

  it('is refused before anything is opened if this Node has no SQLite', () => {
    expect(() => checkEngine({ kind: 'sqlite' }, false)).toThrow(/^MODEL_API_STORE: sqlite: needs Node\.js 22\.13/);
    expect(() => checkEngine({ kind: 'sqlite' }, true)).not.toThrow();
    expect(() => checkEngine({ kind: 'memory' }, false)).not.toThrow();
  });

  it('turns its faults into configuration faults, but not defects', () => {
    const defect = new Error('a defect');
    expect(asConfigFault(defect)).toBe(defect);
    expect(asConfigFault(new StoreFault('is broken'))).toEqual(new ConfigFault(['MODEL_API_STORE: is broken']));
  });
});
