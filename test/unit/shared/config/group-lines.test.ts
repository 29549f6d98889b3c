import { GroupLines } from '../../../../src/shared/config/group-lines.js';

describe('The lines of groups', () => {
  const lines = new GroupLines([{ name: 'lab' }, { name: 'bio101', expiresAt: 10 }, { name: 'bio102', expiresAt: 20 }]);

  it('are found by name, in the order of the file', () => {
    expect(lines.linesOf(['bio102', 'art', 'lab']).map(({ name }) => name)).toEqual(['lab', 'bio102']);
    expect(lines.linesOf([])).toEqual([]);
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
