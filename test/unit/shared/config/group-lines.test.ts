import { GroupLines } from '../../../../src/shared/config/group-lines.js';

describe('The lines of groups', () => {
  const lines = new GroupLines([{ name: 'lab' }, { name: 'bio101', expiresAt: 10 }, { name: 'bio102', expiresAt: 20 }]);

  it('are found by name, in the order of the file', () => {
    expect(lines.linesOf(['bio102', 'art', 'lab']).map(({ name }) => name)).toEqual(['lab', 'bio102']);
    expect(lines.linesOf([])).toEqual([]);
  });

  it('are found with those of the groups around them, which end the access, too', () => {
    const nested = new GroupLines([
      { name: 'institute', expiresAt: 5 },
      { name: 'lab', outer: 'institute' },
      { name: 'bio101', outer: 'lab', expiresAt: 3 },
      { name: 'art', outer: 'gone' },
    ]);
    expect(nested.linesOf(['institute', 'bio101']).map(({ name }) => name)).toEqual(['institute', 'bio101', 'lab']);
    expect(nested.endOf(['lab'])).toEqual({ group: 'institute', expiresAt: 5 });
    expect(nested.endOf(['bio101'])).toEqual({ group: 'bio101', expiresAt: 3 });
    expect(nested.endOf(['bio101', 'art'])).toBeNull();
    expect(nested.outerFault('bio101')).toBeNull();
  });

  it.each<[groups: string[], end: object | null]>([
    [[], null],
    [['art'], null],
    [['lab'], null],
    [['bio101', 'art'], { group: 'bio101', expiresAt: 10 }],
    [['bio102', 'bio101'], { group: 'bio102', expiresAt: 20 }],
    [['bio101', 'lab'], null],
  ])('end the access of a member when the last of them ends: %j', (groups, end) => {
    expect(lines.endOf(groups)).toEqual(end);
  });
});
