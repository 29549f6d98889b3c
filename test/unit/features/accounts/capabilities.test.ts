import { unfencedCapabilities } from '../../../../src/features/accounts/capabilities.js';

const status = (bounding: string, ambient: string) =>
  `Name:\tnode\nCapInh:\t0000000000000000\nCapPrm:\t${bounding}\nCapEff:\t${bounding}\nCapBnd:\t${bounding}\nCapAmb:\t${ambient}\n`;
const none = '0000000000000000';
const all = '000001ffffffffff';
const defaultOfContainers = '00000000a80425fb';

describe('The capabilities that weaken the fence around logins', () => {
  it.each<[string, string, boolean, string[]]>([
    ['root with all', status(all, none), true, expect.arrayContaining(['CAP_SYS_ADMIN', 'CAP_PERFMON'])],
    ['root in a container', status(defaultOfContainers, none), true, []],
    ['root without any', status(none, none), true, []],
    ['root with one', status('0000004000000000', none), true, ['CAP_PERFMON']],
    ['another user, whose programs get none', status(all, none), false, []],
    ['another user with an ambient one', status(all, '0000000000080000'), false, ['CAP_SYS_PTRACE']],
    ['a kernel without the file', '', true, []],
  ])('are those of %s', (_, text, isRoot, expected) => {
    expect(unfencedCapabilities(text, isRoot)).toEqual(expected);
  });
});
