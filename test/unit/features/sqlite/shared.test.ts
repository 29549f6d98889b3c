import { openSqlite } from '../../../../src/features/sqlite/open.js';
import { family, findFault } from '../../../../src/features/sqlite/shared.js';
import { StoreFault } from '../../../../src/primary/store/contract/store.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

describe('A store in a file', () => {
  it('is named by an absolute path', () => {
    expect(family.parsePlace('sqlite:/var/lib/store.db')).toEqual({ shown: '/var/lib/store.db', password: null });
  });

  it.each(['sqlite', 'sqlite:', 'sqlite:store.db', 'sqlite:/folder/', 'Sqlite:/a.db', ' sqlite:/a.db'])(
    'is not named by %j',
    (text) => {
      expect(family.parsePlace(text)).toBeNull();
    },
  );

  it('is refused if this Node has no SQLite', () => {
    expect(findFault(false)).toMatch(/^sqlite: needs Node\.js 22\.13 or later, and this is v/);
    expect(findFault(true)).toBeNull();
  });

  it('is not opened where no file can be', async () => {
    const config = await loadConfig({}, async () => '');
    const parts = { config, tables: [], clock: new FakeClock(), onHang: () => {} };
    await expect(openSqlite('/proc/version/store.db', parts)).rejects.toBeInstanceOf(StoreFault);
  });
});
