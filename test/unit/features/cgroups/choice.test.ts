import { chooseCgroups } from '../../../../src/features/cgroups/choice.js';
import { chooseTermination, type HostTools } from '../../../../src/primary/cli/terminate/termination.js';
import { systemClock as clock } from '../../../../src/shared/clock.js';
import type { UnitCgroups } from '../../../../src/shared/process/cgroup.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { describeWithCgroups, temporaryCgroup, temporaryInstance } from '../../../support/processes/trees.js';

const noTools: HostTools = { setpriv: null, hasPs: false };

interface Options {
  readonly cgroup?: string;
  readonly maxMemoryBytes?: number | null;
  readonly tools?: HostTools;
  readonly unitCgroups?: UnitCgroups;
}

async function choose({ cgroup = 'off', maxMemoryBytes = null, ...others }: Options) {
  const { tools = noTools, unitCgroups = null } = others;
  const values = { MODEL_API_CGROUP: cgroup, MODEL_API_CLI_MEMORY_MB: maxMemoryBytes };
  await using instance = await temporaryInstance(); // the end of the containments sweeps its processes
  const host = { instance, unitCgroups, isService: false, clock, log: new LogBook() };
  const { containments, warnings, fault } = await chooseTermination(tools, host, chooseCgroups(values));
  await containments.close();
  return { means: containments.means, warnings, fault };
}

describe('The way to end processes', () => {
  it('is by process group if cgroups are switched off, without a warning', async () => {
    const chosen = await choose({ tools: { setpriv: '/usr/bin/setpriv', hasPs: false } });
    expect(chosen).toEqual({ means: 'process-group', warnings: [], fault: null });
  });

  it('is not replaced by another if the configured cgroup cannot be used', async () => {
    const faults = ['MODEL_API_CGROUP: /no/such/cgroup: ENOENT'];
    await expect(choose({ cgroup: '/no/such/cgroup' })).rejects.toMatchObject({ name: 'ConfigFault', faults });
  });

  it('includes a warning about a memory limit that cannot be enforced without a cgroup', async () => {
    const tools = { setpriv: '/usr/bin/setpriv', hasPs: false };
    const { warnings } = await choose({ maxMemoryBytes: 1024 ** 3, tools });
    expect(warnings).toEqual([expect.stringContaining('MODEL_API_CLI_MEMORY_MB has no effect')]);
  });
});

describeWithCgroups('The processes of a unit that is only inspected', () => {
  const unitCgroups = { fault: null, controllers: new Set(['pids']) };

  it('have the cgroups that systemd gives the unit, whatever this process could create', async () => {
    const chosen = await choose({ cgroup: 'auto', unitCgroups, maxMemoryBytes: 1 });
    expect(chosen).toEqual({
      means: 'cgroup',
      warnings: [expect.stringContaining('MODEL_API_CLI_MEMORY_MB has no effect')],
      fault: null,
    });
  });

  it('have none if the unit has none, or if they are switched off', async () => {
    const without = { fault: 'the unit has no Delegate=', controllers: new Set<string>() };
    const chosen = await choose({ cgroup: 'auto', unitCgroups: without });
    expect(chosen).toMatchObject({ means: 'process-group', fault: without.fault });
    expect(await choose({ cgroup: 'off', unitCgroups })).toMatchObject({ means: 'process-group', fault: null });
  });
});

describeWithCgroups('The way to end processes if cgroups can be created', () => {
  it('is by cgroup, which needs no other tool', async () => {
    await using parent = await temporaryCgroup();
    expect(await choose({ cgroup: parent.path })).toEqual({ means: 'cgroup', warnings: [], fault: null });
  });

  it('includes a warning about a memory limit only if its controller is not available', async () => {
    await using parent = await temporaryCgroup();
    const available = parent.controllers();
    const { warnings } = await choose({ cgroup: parent.path, maxMemoryBytes: 1024 ** 3 });
    const missing = available.has('memory') ? [] : ['MODEL_API_CLI_MEMORY_MB'];
    expect(warnings).toEqual(missing.map((name) => expect.stringContaining(name)));
  });
});
