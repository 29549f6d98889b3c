import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { systemClock } from '../../../src/shared/clock.js';
import { Cgroup } from '../../../src/shared/process/cgroup.js';

/** Returns the cgroup v2 folder of this process; null if cgroup v2 is not mounted. */
export function ownCgroupFolder(): string | null {
  try {
    const [, membership] = /^0::(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? [];
    const [, point] = /^\S+ \S+ \S+ \/ (\S+) .* - cgroup2 /m.exec(readFileSync('/proc/self/mountinfo', 'utf8')) ?? [];
    return membership === undefined || point === undefined ? null : resolve(join(point, membership));
  } catch {
    return null;
  }
}

function nameOfNew(): string {
  return `prompt-relay-test-${randomUUID()}`;
}

/** Whether this process can create a cgroup below `parent`, move a process into it, and kill it. */
function isWritable(parent: string): boolean {
  const path = join(parent, nameOfNew());
  try {
    mkdirSync(path);
  } catch {
    return false;
  }
  try {
    writeFileSync(join(path, 'cgroup.kill'), '1');
    return existsSync(join(path, 'cgroup.events'));
  } catch {
    return false;
  } finally {
    rmdirSync(path);
  }
}

const parent = ownCgroupFolder();

/** Returns `describe` for a suite that creates cgroups (v2); skips it with a message if that is impossible. */
export function describeWithCgroup(): jest.Describe {
  if (parent !== null && isWritable(parent)) return describe;
  process.stderr.write('Skipped, because no cgroup v2 can be made here: what needs one.\n');
  return describe.skip;
}

/** Creates a cgroup that is killed and removed when its scope ends. */
export async function scratchCgroup(): Promise<{ readonly cgroup: Cgroup } & AsyncDisposable> {
  if (parent === null) throw new Error('there is no cgroup v2');
  const cgroup = new Cgroup(join(parent, nameOfNew()));
  await cgroup.create();
  return {
    cgroup,
    [Symbol.asyncDispose]: async () => {
      await cgroup.kill(systemClock, 5000);
      await cgroup.remove();
    },
  };
}
