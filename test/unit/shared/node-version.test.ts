import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../support/documents/sources.js';

const mains = ['primary', 'command', 'worker'].map((folder) => join(root, 'dist', 'src', folder, 'main.js'));
const check = join(root, 'dist', 'src', 'shared', 'node-version.js');

/** Loads a program that sees this version of Node. */
function runAs(version: string, program: string) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  return spawnSync(process.execPath, ['-e', `${pretend} require(${JSON.stringify(program)});`], { encoding: 'utf8' });
}

describe('The Node.js version', () => {
  it('is checked first in each main file', () => {
    for (const main of mains) {
      const [first] = /require\("([^"]+)"\)/.exec(readFileSync(main, 'utf8'))?.slice(1) ?? [];
      expect(first).toBe('../shared/node-version.js');
    }
  });

  it('matches package.json', () => {
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const oldest = engines.node.replace('>=', '');
    expect(runAs('20.19.1', check).stderr).toContain(`needs Node.js ${oldest} or newer`);
  });

  it.each(['0.12.18', '12.22.12', '18.20.8', '20.9.0', '20.19.1'])(
    'ends the process with 78 if it is %s',
    (version) => {
      const { status, stdout, stderr } = runAs(version, check);
      expect([status, stdout]).toEqual([78, '']);
      expect(stderr).toBe(`prompt-relay needs Node.js 20.19.2 or newer; this is ${version}\n`);
    },
  );

  it.each(['20.19.2', '20.20.0', '21.0.0', '26.10.0', '27.0.0-nightly20261101'])('is enough if it is %s', (version) => {
    expect(runAs(version, check)).toMatchObject({ status: 0, stderr: '' });
  });
});
