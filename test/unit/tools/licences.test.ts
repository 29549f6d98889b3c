import { isAccepted, unaccepted } from '../../../tools/licences.js';
import type { LockedPackage } from '../../../tools/lockfile.js';

const plain: LockedPackage = {
  ...{ version: '1.0.0', license: 'MIT', dev: false, optional: false, hasInstallScript: false },
  ...{ dependencies: {}, optionalDependencies: {} },
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
    ...['GPL-3.0', 'AGPL-3.0-only OR SSPL-1.0', 'MIT AND GPL-3.0', 'MIT OR ISC AND GPL-3.0'],
    ...['(MIT OR ISC) AND GPL-3.0', 'MIT WITH Some-exception', 'SEE LICENSE IN LICENSE.txt', 'UNLICENSED', 'mit', ''],
  ])('%p is not accepted', (expression) => expect(isAccepted(expression)).toBe(false));
});

describe('The licence check', () => {
  const one = 'node_modules/one';

  it.each<[string, Partial<LockedPackage>, object | null, string[]]>([
    ['no fault if the package has an allowed licence', {}, { license: 'MIT' }, []],
    ['no fault in a development package', { dev: true }, { license: 'GPL-3.0' }, []],
    [
      'the licence in the package, not in the lockfile',
      {},
      { license: 'GPL-3.0' },
      [`${one} has the licence GPL-3.0, which is not on the list`],
    ],
    ['a package without a licence', {}, {}, [`${one} names no licence`]],
    ['a package that is not installed', {}, null, [`${one} is not installed: run npm ci`]],
    ['no fault if that package is for another platform', { optional: true }, null, []],
    ['its licence in the lockfile', { optional: true, license: 'GPL-3.0' }, null, [expect.any(String)]],
  ])('finds %s', async (_, entry, manifest, faults) => {
    expect(await faultsOf(entry, manifest)).toEqual(faults);
  });
});
