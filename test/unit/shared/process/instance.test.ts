import {
  cookieOf,
  folderPrefix,
  instanceOf,
  ownerOfFolder,
  readInstance,
  renewalLockIn,
  writeInstance,
} from '../../../../src/shared/process/proc.js';

const instance = { pid: 4711, startTicks: '18446744073709551615', pidNamespace: '4026531836' };
const written = '4711.18446744073709551615.4026531836';

describe('The name of an instance', () => {
  it('preserves every digit', () => {
    expect(writeInstance(instance)).toBe(written);
    expect(readInstance(written)).toEqual(instance);
  });

  it.each(['', '1', '1.2', '1.2.3.4', '1.2.', '-1.2.3', 'a.b.c', ' 1.2.3', '1.2.3\n'])(
    'is not parsed from %j',
    (text) => {
      expect(readInstance(text)).toBeNull();
    },
  );
});

describe('A cookie', () => {
  it('contains its instance and its number', () => {
    expect(cookieOf(instance, 7)).toBe(`${written}:7`);
    expect(instanceOf(cookieOf(instance, 7))).toEqual(instance);
    expect(renewalLockIn(cookieOf(instance, 7))).toBeNull();
  });

  it('contains the lock of the login that its program renews', () => {
    const lock = '/home/ada: the second\n/.claude.lock';
    expect(instanceOf(cookieOf(instance, 7, lock))).toEqual(instance);
    expect(renewalLockIn(cookieOf(instance, 7, lock))).toBe(lock);
  });

  it.each([
    '',
    'x',
    '1.2.3',
    '1.2:3',
    '1.2.3:',
    '1.2.3:4:',
    '1.2.3:x:/y',
    ' 1.2.3:4',
    '1.2.3:4\n',
    '-1.2.3:4',
    'a.b.c:d',
  ])('in another format names no instance: %j', (cookie) => {
    expect(instanceOf(cookie)).toBeNull();
  });
});

describe('The folder of an instance', () => {
  it.each(['', '-Ab3dEf'])('contains the instance, also with the suffix of a temporary folder: %j', (end) => {
    expect(ownerOfFolder(folderPrefix(instance) + end)).toEqual(instance);
  });

  it.each([
    ...['', 'prompt-relay', 'prompt-relay-', 'prompt-relay-test-AAAAAA', `x${folderPrefix(instance)}`],
    ...[`${folderPrefix(instance)}-`, `${folderPrefix(instance)}-AAAAA`, `${folderPrefix(instance)}-AAAAAAA`],
    ...[`${folderPrefix(instance)}-AAAAA/`, `${folderPrefix(instance)}AAAAAA`, `${folderPrefix(instance)}..`],
    ...[`${folderPrefix(instance)}.5`, `${folderPrefix(instance)}.service`],
  ])('is not recognised in %j', (name) => {
    expect(ownerOfFolder(name)).toBeNull();
  });
});
