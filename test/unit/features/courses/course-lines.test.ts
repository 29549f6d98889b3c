import {
  type CourseFault,
  type CourseOrder,
  courseEnd,
  membersIn,
  usersOf,
  withCourse,
  withCourseEnd,
  withoutCourse,
} from '../../../../src/features/courses/course-lines.js';
import { digestOf } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { keyOptions } from '../../../support/basics/key-options.js';

const people = (...logins: readonly string[]) => logins.map((login, index) => ({ login, name: '', line: index + 1 }));
const first: CourseOrder = {
  course: 'bio101',
  options: { expires: ['2027-07-15'], each: ['tokens:5/week', 'rate:10/60'] },
  people: people('ada', 'ben'),
  isSignOn: false,
  removesOthers: false,
};
const keyFor = (name: string) => `key of ${name}`;
const edit = (text: string, order: Partial<CourseOrder> = {}) =>
  withCourse(text, { ...first, ...order }, keyOptions, keyFor);
const lineOf = (name: string, options = 'group=bio101') => `${name}:sha256:${digestOf(keyFor(name))}:${options}`;
const faultsOf = (text: string, order: Partial<CourseOrder> = {}) => {
  try {
    edit(text, order);
    return [];
  } catch (error) {
    return (error as CourseFault).faults;
  }
};

describe('A course in a keys file', () => {
  it('is a line of a group, and a key for each person', () => {
    const { text, isNew, added, absent } = edit('# people\nroot:sha256:00');
    expect([isNew, added.map(({ id }) => id), absent]).toEqual([true, ['bio101-ada', 'bio101-ben'], []]);
    expect(text.split('\n')).toEqual([
      ...['# people', 'root:sha256:00'],
      '@bio101 expires=2027-07-15 each=tokens:5/week each=rate:10/60',
      ...[lineOf('bio101-ada'), lineOf('bio101-ben'), ''],
    ]);
    expect(readKeysFile(text.replace('root:sha256:00\n', ''), keyOptions).faults).toEqual([]);
  });

  it('keeps its keys with their options, adds new people, and names those who are absent', () => {
    const before = edit('').text.replace(lineOf('bio101-ada'), lineOf('bio101-ada', 'rate=1/60,group=bio101'));
    const { text, isNew, added, staying, absent } = edit(before, { options: {}, people: people('ada', 'cleo') });
    const ids = [added, staying, absent].map((members) => members.map(({ id }) => id));
    expect([isNew, ids]).toEqual([false, [['bio101-cleo'], ['bio101-ada'], ['bio101-ben']]]);
    expect(text).toBe(`${before}${lineOf('bio101-cleo')}\n`);
  });

  it('loses the absent ones if that is wanted, but neither its teacher nor other keys of the group', () => {
    const others = [lineOf('prof', 'group=bio101,admin=@bio101'), lineOf('tutor'), lineOf('bio101-x', 'group=law')];
    const before = `${edit('').text}${others.join('\n')}\nbio101-y:md5:x\n`;
    const { text } = edit(before, { people: people('ada'), removesOthers: true });
    expect(text).toBe(before.replace(`${lineOf('bio101-ben')}\n`, ''));
  });

  it('gets other limits in place of the old ones, and keeps the rest of its line', () => {
    const before = edit('').text;
    const { text } = edit(before, { options: { each: ['tokens:9/week'], models: ['haiku'] } });
    expect(text.split('\n')[0]).toBe('@bio101 expires=2027-07-15 each=tokens:9/week models=haiku');
  });

  it('has lines for people whom a proxy signs on', () => {
    const { text } = edit('', { isSignOn: true, people: people('ada@example.org') });
    expect(text.split('\n')[1]).toBe('sso:ada@example.org:group=bio101');
    const other = edit(text, { isSignOn: true, people: people('ben'), removesOthers: true });
    expect(other.text.split('\n').slice(1)).toEqual(['sso:ben:group=bio101', '']);
  });

  it.each([
    ['without an end', '', { options: {} }, ['a new course needs --until, such as --until 2027-07-15']],
    [
      'with the name of a group',
      '@bio101 tokens=5/day',
      {},
      ['@bio101 is a group without an end, and no course: choose another name'],
    ],
    [
      'with the name of the group of a key',
      lineOf('x'),
      {},
      ['a key or a person already has the group bio101: choose another name'],
    ],
    [
      'with the name of a key of another group',
      lineOf('bio101-ben', 'group=law'),
      {},
      ['line 2: the keys file already has a key with the name bio101-ben, which is not in this course'],
    ],
    [
      'with a person who has a line already',
      'sso:ada:rate=1/1',
      { isSignOn: true },
      ['line 1: the keys file already has a line sso:ada, which is not in this course'],
    ],
  ])('is refused %s', (_, text, order, faults) => {
    expect(faultsOf(text, order)).toEqual(faults);
  });

  it('ends, and leaves the file', () => {
    const before = `${lineOf('root', 'scopes=admin')}\n${edit('').text}`;
    const ended = withCourseEnd(before, 'bio101', '2026-12-01');
    expect(ended).toBe(
      before.replace(
        'expires=2027-07-15 each=tokens:5/week each=rate:10/60',
        'each=tokens:5/week each=rate:10/60 expires=2026-12-01',
      ),
    );
    expect([courseEnd(ended, 'bio101'), courseEnd(ended, 'law')]).toEqual(['2026-12-01', null]);
    expect(withoutCourse(ended, 'bio101', keyOptions)).toBe(`${lineOf('root', 'scopes=admin')}\n`);
    expect(membersIn(readKeysFile(ended, keyOptions), 'bio101')).toHaveLength(2);
  });

  it('leaves its line, with the end, while another key has the group', () => {
    const others = [lineOf('tutor'), lineOf('prof', 'group=bio101,admin=@bio101')];
    const ended = withCourseEnd(`${edit('').text}${others.join('\n')}\n`, 'bio101', '2026-12-01');
    const left = withoutCourse(ended, 'bio101', keyOptions);
    expect(left.split('\n').slice(1)).toEqual([...others, '']);
    expect(courseEnd(left, 'bio101')).toBe('2026-12-01');
    expect(usersOf(readKeysFile(left, keyOptions), 'bio101')).toEqual(['tutor', 'prof']);
  });

  it('may have 10,000 people', () => {
    const all = people(...Array.from({ length: 10_000 }, (_, index) => `user${index}`));
    const startedAt = performance.now();
    const { text } = edit('', { people: all });
    const { staying } = edit(text, { people: all, removesOthers: true });
    expect([staying.length, readKeysFile(text, keyOptions).keys.length]).toEqual([10_000, 10_000]);
    expect(performance.now() - startedAt).toBeLessThan(5000);
  });
});
