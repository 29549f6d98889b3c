import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const modules = join(__dirname, '..', '..', '..', '..', 'src');

/**
 * Program that deletes and erases these variables, and prints whether the kernel, the process itself or a child still
 * shows them.
 */
const erases = `
const { eraseFromEnviron } = require(process.argv[1] + '/shared/process/proc.js');
const names = process.argv.slice(2);
for (const name of names) delete process.env[name];
eraseFromEnviron(names).then((isErased) => {
  const { readFileSync } = require('node:fs');
  const { execFileSync } = require('node:child_process');
  console.log(JSON.stringify({ isErased,
    shown: readFileSync('/proc/self/environ', 'latin1').split('\\0').filter((entry) => entry !== ''),
    own: { ...process.env },
    child: execFileSync('/usr/bin/env', { encoding: 'utf8' }).trimEnd().split('\\n'),
  }));
});
`;

async function erase(env: Readonly<Record<string, string>>, ...names: string[]) {
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', erases, modules, ...names], { env });
  return JSON.parse(stdout);
}

describe('The environment of a process in /proc', () => {
  it('contains nothing of an erased variable, and all of the others', async () => {
    const others = { A: 'one', KEY_B: 'schlüssel=ö', Z: '' };
    const said = await erase(
      { A: 'one', KEY: 'geheim', KEY_B: 'schlüssel=ö', TOKEN: 'g=h'.repeat(40_000), Z: '' },
      'KEY',
      'TOKEN',
    );
    const entries = ['A=one', 'KEY_B=schlüssel=ö', 'Z='];
    expect(said).toEqual({ isErased: true, shown: entries.map(asLatin1), own: others, child: entries });
  });

  it('is unchanged if there is nothing to erase', async () => {
    expect(await erase({ A: 'one' })).toMatchObject({ isErased: true, shown: ['A=one'] });
    expect(await erase({ A: 'one' }, 'KEY')).toMatchObject({ isErased: true, shown: ['A=one'] });
  });
});

function asLatin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}
