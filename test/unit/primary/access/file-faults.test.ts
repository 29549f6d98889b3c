import { FileFaults } from '../../../../src/primary/access/file-faults.js';

const made = { name: 'made', publicName: 'keys_file', part: 'keys', words: 'in the made keys' } as const;
const courses = { ...made, name: 'courses', words: 'in the courses' };

describe('The faults of files', () => {
  it('are reported in the same order, whatever the order in which features have added their files', () => {
    const reasonsOf = (added: readonly (typeof made | typeof courses)[]) => {
      const faults = new FileFaults();
      for (const file of added) faults.addFile(file);
      for (const name of ['made', 'courses', 'keys']) faults.replace(name, ['a fault']);
      return [faults.reasons.map(({ message }) => message), Object.keys(faults.counts)];
    };
    expect(reasonsOf([made, courses])).toEqual(reasonsOf([courses, made]));
    expect(reasonsOf([made, courses])[1]).toEqual(['keys', 'accounts', 'courses', 'made']);
  });
});
