import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { describeWithPidNamespace, inPidNamespace } from '../../support/processes/pid-namespace.js';

/** Program that starts programs in process groups, as the service does. */
const treeOf = `
const { spawnProgram } = load('src/primary/cli/process/launcher');
const { GroupContainments } = load('src/primary/cli/terminate/group-containment');
const { ProcessTree } = load('src/primary/cli/terminate/process-tree');
const { createKillTree } = load('src/primary/cli/terminate/termination');
const { instanceOfProcess } = load('src/shared/process/proc');
const { cookieOf } = load('src/shared/process/proc');
const { systemClock: clock } = load('src/shared/clock');
const { LogBook } = load('test/support/basics/log-book');
const observer = new Proxy({}, { get: () => () => {} });
const instance = await instanceOfProcess(process.pid);
const containments = new GroupContainments(instance, null, clock);
const killTree = createKillTree(true, clock);
let serial = 0;
async function treeOf(script) {
  const cookie = cookieOf(instance, ++serial);
  const containment = await containments.create(serial, cookie);
  const start = { program: '/bin/sh', args: ['-c', script], env: {}, workingDirectory: '/', cookie };
  const child = await spawnProgram(start, containment, observer);
  return new ProcessTree(child, containment, async () => {}, { killTree, clock, log: new LogBook(), observer });
}
`;

describeWithPidNamespace('An unrelated process that has received the id of a reaped program', () => {
  it('survives with its process group when the job of that program ends', async () => {
    const said = await inPidNamespace(`${treeOf}
      const tree = await treeOf('exit 0');
      await tree.child.exited;
      const stranger = takePid(tree.child.pid);
      tree.pause();
      await tree.end(100, 'cancelled');
      await sleep(50);
      say([isAlive(stranger), stateOf(stranger.pid)]);
    `);
    expect(said).toEqual([true, 'S']);
  });

  it('is not stopped if Node has reaped the program but not yet reported it', async () => {
    const said = await inPidNamespace(`${treeOf}
      const trees = [await treeOf('exec sleep 60'), await treeOf('exec sleep 60')];
      await sleep(100);
      let stranger;
      for (const [tree, other] of [trees, trees.toReversed()]) tree.child.prependOnceListener('exit', () => {
        if (stranger !== undefined) return;
        stranger = takePid(other.child.pid);
        other.pause();
      });
      for (const { child } of trees) process.kill(child.pid, 'SIGKILL');
      while (!trees.every(({ child }) => stateOf(child.pid) === 'Z'));
      await Promise.all(trees.map(({ child }) => child.exited));
      await sleep(50);
      say([isAlive(stranger), stateOf(stranger.pid)]);
    `);
    expect(said).toEqual([true, 'S']);
  });

  it('is not signalled by a tree-kill that is slower than the program', async () => {
    await using folder = await temporaryFolder();
    const ps = join(folder.path, 'ps');
    await writeFile(ps, '#!/bin/sh\nsleep 0.12\nexit 1\n');
    await chmod(ps, 0o755);
    const said = await inPidNamespace(
      `${treeOf}
      const tree = await treeOf("trap '' TERM; sleep 0.03");
      const ended = tree.end(400, 'cancelled');
      await tree.child.exited;
      const stranger = takePid(tree.child.pid);
      await ended;
      await sleep(50);
      say(isAlive(stranger));
    `,
      { PATH: `${folder.path}:${process.env.PATH}` },
    );
    expect(said).toBe(true);
  });

  it('is not killed by a sweep, even if it belongs to a running job', async () => {
    const said = await inPidNamespace(`
      const { ProcessScanner } = load('src/shared/process/scanner');
      const { systemClock } = load('src/shared/clock');
      const scanner = new ProcessScanner(systemClock);
      const carrier = spawn('/bin/sleep', ['60'], { env: { PROMPT_RELAY_JOB: 'old' } });
      await once(carrier, 'spawn');
      const first = (await scanner.find((cookie) => cookie === 'old')).pids;
      process.kill(carrier.pid, 'SIGKILL');
      await once(carrier, 'exit');
      await once(takePid(carrier.pid, { PROMPT_RELAY_JOB: 'new' }), 'spawn');
      writeFileSync('/proc/sys/kernel/ns_last_pid', '5000'); // as if many others had been started after it
      const seen = [];
      const { pids } = await scanner.find((cookie) => cookie === 'old', (pid) => seen.push(pid));
      const later = (await scanner.find((cookie) => cookie === 'new')).pids;
      say([first.length, pids, seen, later.length]);
    `);
    expect(said).toEqual([1, [], [], 1]);
  });
});
