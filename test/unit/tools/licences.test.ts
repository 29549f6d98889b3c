import { isAccepted, unaccepted } from '../../../tools/licences.js';
import type { LockedPackage } from '../../../tools/lockfile.js';

const plain: LockedPackage = {
  version: '1.0.0',
  license: 'MIT',
  dev: false,
  optional: false,
  hasInstallScript: false,
  dependencies: {},
  optionalDependencies: {},
};

function faultsOf(entry: Partial<LockedPackage>, manifest: unknown): Promise<string[]> {
  return unaccepted(new Map([['node_modules/one', { ...plain, ...entry }]]), async () => manifest);
}

describe('A licence', () => {
  it.each(['MIT', 'ISC', 'BSD-3-Clause', '(MIT OR GPL-3.0)', 'MIT OR Apache-2.0', 'MIT AND ISC', '(MIT AND ISC)'])(
    '%s is accepted',
    (expression) => expect(isAccepted(expression)).toBe(true),
  );

  it.each([
    'GPL-3.0',
    'AGPL-3.0-only OR SSPL-1.0',
    'MIT AND GPL-3.0',
    'MIT OR ISC AND GPL-3.0',
    '(MIT OR ISC) AND GPL-3.0',
    'MIT WITH Some-exception',
    'SEE LICENSE IN LICENSE.txt',
    'UNLICENSED',
    'mit',
    '',
  ])('%p is not accepted', (expression) => expect(isAccepted(expression)).toBe(false));
});

describe('The licence check', () => {
  it('finds no fault if the package has an allowed licence', async () => {
    expect(await faultsOf({}, { license: 'MIT' })).toEqual([]);
  });

  it('uses the package, not the lockfile', async () => {
    expect(await faultsOf({}, { license: 'GPL-3.0' })).toEqual([
      'node_modules/one has the licence GPL-3.0, which is not on the list',
    ]);
  });

  it('finds a package without a licence', async () => {
    expect(await faultsOf({}, {})).toEqual(['node_modules/one names no licence']);
  });

  it('finds a package that is not installed, unless it is for another platform', async () => {
    expect(await faultsOf({}, null)).toEqual(['node_modules/one is not installed: run npm ci']);
    expect(await faultsOf({ optional: true }, null)).toEqual([]);
    expect(await faultsOf({ optional: true, license: 'GPL-3.0' }, null)).toHaveLength(1);
  });

  it('ignores development packages', async () => {
    expect(await faultsOf({ dev: true }, { license: 'GPL-3.0' })).toEqual([]);
  });
});
