import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findHostTools, findNotifier } from '../../../../src/primary/lifecycle/host.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

/** Calls `act` with a search path that contains only these programs. */
async function withPrograms<T>(
  sources: Readonly<Record<string, string>>,
  act: (searchPath: string) => Promise<T>,
): Promise<T> {
  await using folder = await temporaryFolder();
  for (const [name, source] of Object.entries(sources)) {
    const path = join(folder.path, name);
    await writeFile(path, source);
    await chmod(path, 0o755);
  }
  return await act(folder.path);
}

function node(source: string): string {
  return `#!${process.execPath}\n${source}\n`;
}

/** Stand-in for setpriv: runs the rest of its arguments if the first ones are as expected. */
const tiesPrograms = '#!/bin/sh\n[ "$1 $2 $3" = "--pdeathsig KILL --" ] && shift 3 && exec true\nexit 1\n';

describe('The setpriv tool', () => {
  it('is used if it can tie a program to the life of the service', async () => {
    await withPrograms({ setpriv: tiesPrograms }, async (folder) => {
      expect(await findHostTools(folder)).toEqual({ setpriv: join(folder, 'setpriv'), hasPs: false });
    });
  });

  it.each([
    ['does not know the option', { setpriv: node('process.exit(1)') }],
    ['can not be started', { setpriv: '#!/nowhere/interpreter\n' }],
    ['is not there', {}],
  ])('is not used if it %s', async (_, programs) => {
    expect(await withPrograms(programs, findHostTools)).toEqual({ setpriv: null, hasPs: false });
  });

  it('is not used if it does not finish in five seconds', async () => {
    const hangs = { setpriv: node('setInterval(() => {}, 1000)') };
    expect(await withPrograms(hangs, findHostTools)).toEqual({ setpriv: null, hasPs: false });
  });

  it('gets nothing of the environment when it is tested', async () => {
    const looks = { setpriv: node('process.exit(process.env.PATH === undefined ? 0 : 1)') };
    expect((await withPrograms(looks, findHostTools)).setpriv).not.toBeNull();
  });
});

describe('The other tools of the host', () => {
  it('are found if they are on the search path', async () => {
    await withPrograms({ ps: node(''), 'systemd-notify': node('') }, async (folder) => {
      expect((await findHostTools(`/nowhere:${folder}`)).hasPs).toBe(true);
      expect(await findNotifier(`/nowhere:${folder}`)).toBe(join(folder, 'systemd-notify'));
    });
  });

  it('are not found elsewhere', async () => {
    expect((await findHostTools('/nowhere')).hasPs).toBe(false);
    expect(await findNotifier('/nowhere')).toBeNull();
  });
});
