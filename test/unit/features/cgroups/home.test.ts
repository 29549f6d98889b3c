import { execFile } from 'node:child_process';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { entering, openCgroupHome } from '../../../../src/features/cgroups/containment.js';
import { systemClock as clock } from '../../../../src/shared/clock.js';
import { Cgroup, cgroupParent, ownCgroup } from '../../../../src/shared/process/cgroup.js';
import { folderPrefix, type Instance } from '../../../../src/shared/process/proc.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { describeWithCgroups, temporaryCgroup } from '../../../support/processes/trees.js';

const instance: Instance = { pid: 1, startTicks: '2', pidNamespace: '3' };

async function foldersIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

it('The parent of all cgroups is null if cgroups are switched off, else the configured one or that of the service', async () => {
  expect(await cgroupParent('off')).toBeNull();
  expect((await cgroupParent('/some/slice'))?.path).toBe('/some/slice');
  expect(await cgroupParent('auto')).toEqual(await ownCgroup());
});

describeWithCgroups('A home for cgroups', () => {
  it('is created below its parent, named after its instance, and is empty after its test', async () => {
    await using parent = await temporaryCgroup();
    const found = await openCgroupHome(parent, instance, false, clock);
    if (found.kind !== 'usable') throw new Error(found.reason);
    expect(await foldersIn(parent.path)).toEqual([folderPrefix(instance)]);
    expect([found.home.path, await foldersIn(found.home.path)]).toEqual([
      join(parent.path, folderPrefix(instance)),
      [],
    ]);
    expect(found.home.pids).toEqual([]);
  });

  it('has the controllers that its parent can pass on', async () => {
    await using parent = await temporaryCgroup();
    const available = parent.controllers();
    const found = await openCgroupHome(parent, instance, false, clock);
    const wanted = ['memory', 'pids'].filter((controller) => available.has(controller));
    expect([...(found.kind === 'usable' ? found.controllers : ['none'])]).toEqual(expect.arrayContaining(wanted));
  });

  it('does not move this process if others share its cgroup', async () => {
    await using parent = await temporaryCgroup();
    const before = await ownCgroup();
    const found = await openCgroupHome(parent, instance, true, clock);
    expect([found.kind, await ownCgroup()]).toEqual(['usable', before]);
    expect(await foldersIn(parent.path)).toEqual([folderPrefix(instance)]);
  });

  it('lets a service that is alone in its cgroup move into a leaf, so that controllers can be passed on', async () => {
    await using parent = await temporaryCgroup();
    const [program, args] = entering(parent, process.execPath, ['-e', opensHome, modules]);
    const { stdout } = await promisify(execFile)(program, [...args]);
    const { kind, own } = JSON.parse(stdout) as { readonly kind: string; readonly own: string };
    expect([kind, own]).toEqual(['usable', join(parent.path, 'service')]);
    expect((await foldersIn(parent.path)).toSorted()).toEqual([folderPrefix(instance), 'service']);
  });
});

const modules = join(__dirname, '..', '..', '..', '..', 'src');

/** Program that opens a home, with permission to move itself, and prints its cgroup afterwards. */
const opensHome = `
const [src] = process.argv.slice(1);
const { openCgroupHome } = require(src + '/features/cgroups/containment.js');
const { ownCgroup } = require(src + '/shared/process/cgroup.js');
const { systemClock } = require(src + '/shared/clock.js');
(async () => {
  const { kind } = await openCgroupHome(await ownCgroup(), ${JSON.stringify(instance)}, true, systemClock);
  console.log(JSON.stringify({ kind, own: (await ownCgroup()).path }));
})();
`;

describe('A place without cgroups', () => {
  it('is unusable if there is no parent', async () => {
    expect(await openCgroupHome(null, instance, false, clock)).toMatchObject({ kind: 'unusable' });
  });

  it('is reported with its path and the error of the system', async () => {
    const found = await openCgroupHome(new Cgroup('/no/such/cgroup'), instance, false, clock);
    expect(found).toEqual({ kind: 'unusable', reason: '/no/such/cgroup: ENOENT' });
  });

  it('may be an ordinary folder, in which nothing is left behind', async () => {
    await using folder = await temporaryFolder();
    const found = await openCgroupHome(new Cgroup(folder.path), instance, false, clock);
    expect(found.kind).toBe('unusable');
    expect(await readdir(folder.path)).toEqual([]);
    expect((await stat(folder.path)).isDirectory()).toBe(true);
    expect(found.kind === 'unusable' && found.reason).toContain(basename(folder.path));
  });
});
