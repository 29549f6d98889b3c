import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, constants } from 'node:fs/promises';
import { type Clock, delay } from '../../../shared/clock.js';
import { Cgroup, ownCgroup } from '../../../shared/process/cgroup.js';
import { folderPrefix, type Instance } from '../../../shared/process/instance.js';
import { entering } from './cgroup-containment.js';

/** `auto`: below the service's own cgroup, where that is possible. A path: below this one. */
export type CgroupSetting = 'auto' | 'off' | string;

export type CgroupHome =
  | { readonly kind: 'usable'; readonly home: Cgroup; readonly controllers: ReadonlySet<string> }
  | { readonly kind: 'unusable'; readonly reason: string };

const wanted = ['memory', 'pids'] as const;
const trialLimitMs = 2000;

/** The folder in which cgroups of prompt-relay are made; null where there is none, or where they are switched off. */
export async function cgroupParent(setting: CgroupSetting): Promise<Cgroup | null> {
  if (setting === 'off') return null;
  return setting === 'auto' ? ownCgroup() : new Cgroup(setting);
}

/**
 * Makes the cgroup that holds those of the CLI processes, and tries it out: a child is put into one and ended by it.
 * With `mayMove`, a service that has its cgroup for itself (as systemd's Delegate gives it) moves into a leaf first,
 * because controllers can be passed on only by a cgroup without processes of its own.
 */
export async function openCgroupHome(
  parent: Cgroup | null,
  instance: Instance,
  mayMove: boolean,
  clock: Clock,
): Promise<CgroupHome> {
  if (parent === null) return { kind: 'unusable', reason: 'cgroup v2 is not mounted, or switched off' };
  const home = parent.child(folderPrefix(instance));
  try {
    await access(parent.entrance); // an ordinary folder is refused before anything is made in it
    await home.create();
    if (mayMove && (await isAlone(parent))) await moveIntoLeaf(parent);
    await passOn(parent);
    await passOn(home);
    await tryOut(home, clock);
    const available = home.child('trial').controllers();
    await home.child('trial').remove();
    return { kind: 'usable', home, controllers: available };
  } catch (error) {
    await home.remove();
    const { code, message } = error as NodeJS.ErrnoException;
    return { kind: 'unusable', reason: `${parent.path}: ${code ?? message}` };
  }
}

/** Whether this process has the cgroup for itself. */
async function isAlone(parent: Cgroup): Promise<boolean> {
  const own = await ownCgroup();
  const { pids } = parent;
  return own?.path === parent.path && pids.length === 1 && pids[0] === process.pid;
}

async function moveIntoLeaf(parent: Cgroup): Promise<void> {
  const leaf = parent.child('service');
  await leaf.create().catch(() => {}); // a predecessor in the same unit has made it
  await leaf.set('cgroup.procs', '0');
}

/** Has the controllers that are there passed on to the cgroups below. Each alone: one that can't be had must not cost the others. */
async function passOn(cgroup: Cgroup): Promise<void> {
  for (const controller of wanted) await cgroup.set('cgroup.subtree_control', `+${controller}`).catch(() => {});
}

async function tryOut(home: Cgroup, clock: Clock): Promise<void> {
  const trial = home.child('trial');
  await trial.create();
  await access(trial.entrance, constants.W_OK);
  await access(`${trial.path}/cgroup.kill`, constants.W_OK); // Linux 5.14
  const [program, args] = entering(trial, '/bin/cat', []);
  const child = spawn(program, args, { env: {}, stdio: ['pipe', 'ignore', 'ignore'] });
  child.stdin.on('error', () => {});
  await once(child, 'spawn');
  const exited = once(child, 'exit');
  for (const until = clock.monotonicMs() + trialLimitMs; !trial.isPopulated; ) {
    if (child.exitCode !== null || clock.monotonicMs() > until) throw new Error('a process cannot enter');
    await delay(clock, 1);
  }
  if (!(await trial.kill(clock, trialLimitMs))) throw new Error('cgroup.kill does not end a process');
  await exited;
}
