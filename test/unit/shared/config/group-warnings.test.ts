import { groupWarnings } from '../../../../src/shared/config/group-warnings.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { keyOptions } from '../../../support/basics/key-options.js';

const digest = (name: string) => Buffer.from(name.padEnd(32)).toString('hex');

function warningsOf(...lines: readonly string[]): string[] {
  const content = readKeysFile(
    lines.map((line) => line.replace('DIGEST', digest(line.slice(0, 20)))).join('\n'),
    keyOptions,
  );
  expect(content.faults).toEqual([]);
  return groupWarnings(content);
}

describe('The groups of a keys file', () => {
  it('cause no warning if each has a budget, or if no line names one', () => {
    expect(warningsOf('ada:sha256:DIGEST', 'bob:sha256:DIGEST:group=biology', '@biology tokens=100/day')).toEqual([]);
    expect(warningsOf('@biology tokens=100/day', '@* tokens=1000/day')).toEqual([]);
  });

  it('cause a warning that names a similar group, because a member of a mistyped group has no budget', () => {
    expect(warningsOf('ada:sha256:DIGEST:group=biolgy', '@biology tokens=100/day', '@physics tokens=1/day')).toEqual([
      'the group biolgy of ada has no budget: did you mean biology?',
    ]);
  });

  it('cause one warning for all members of a group', () => {
    expect(warningsOf('ada:sha256:DIGEST:group=law', 'bob:sha256:DIGEST:group=law', 'sso:eve:group=law')).toEqual([
      'the group law of ada and 2 more has no budget: add a line that begins with @law',
    ]);
  });
});
