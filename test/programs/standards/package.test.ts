import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { packProject } from '../../support/documents/packed.js';
import { root } from '../../support/documents/sources.js';
import { problemsOfTypes, unusedNames } from './expected.js';
import { runSuite } from './foreign-suite.js';

interface TypesReport {
  readonly analysis: { readonly problems: readonly { readonly kind: string; readonly resolutionKind?: string }[] };
}

/** Names of one file by the kind of the finding; the field `file` is its path. */
type Finding = Readonly<Record<string, readonly { readonly name: string }[]>> & { readonly file: string };

const knipSettings = join(root, 'test', 'programs', 'standards', 'knip.json');

describe('The package', () => {
  it('has no fault in publint', async () => {
    await using folder = await temporaryFolder();
    const { filename } = await packProject(folder.path);
    expect(await runSuite('publint', folder.path, ['run', filename, '--strict'])).toContain('All good!');
  });

  it('has only the expected problems with types in attw', async () => {
    await using folder = await temporaryFolder();
    const { filename } = await packProject(folder.path);
    const { analysis } = JSON.parse(await runSuite('attw', folder.path, [filename, '-f', 'json'])) as TypesReport;
    const found = analysis.problems.map(({ kind, resolutionKind }) => [kind, resolutionKind].filter(Boolean).join(' '));
    expect(found.sort()).toEqual(Object.keys(problemsOfTypes).sort());
  });
});

describe('The source', () => {
  it('has no file, export or dependency that knip finds unused, except the expected ones', async () => {
    const report = JSON.parse(await runSuite('knip', root, ['-c', knipSettings, '--reporter', 'json']));
    const found = (report.issues as Finding[]).flatMap(({ file, ...kinds }) =>
      Object.values(kinds).flatMap((names) => (names as Finding[string]).map(({ name }) => `${file} ${name}`)),
    );
    expect(found.sort()).toEqual(Object.keys(unusedNames).sort());
  });
});
