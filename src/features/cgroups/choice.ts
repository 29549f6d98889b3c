import type { ContainmentFactory } from '../../primary/cli/terminate/containment.js';
import type { ChooseContainments } from '../../primary/cli/terminate/termination.js';
import { ConfigFault } from '../../shared/config/config.js';
import type { ValuesOf } from '../../shared/config/feature-variables.js';
import { cgroupParent, type UnitCgroups } from '../../shared/process/cgroup.js';
import { CgroupContainments, openCgroupHome } from './containment.js';
import type { variables } from './shared.js';

type CgroupValues = ValuesOf<typeof variables>;
type Chosen = Awaited<ReturnType<ChooseContainments>>;

/**
 * Chooses cgroups if they work on this host. Rejects with a ConfigFault if a configured cgroup cannot be used. For a
 * unit, it returns what its service will find.
 */
export function chooseCgroups(values: CgroupValues): ChooseContainments {
  const { MODEL_API_CGROUP: setting, MODEL_API_CLI_MEMORY_MB: limitBytes } = values;
  return async (groups, { instance, unitCgroups, isService, clock, log }) => {
    const parent = await cgroupParent(setting);
    if (unitCgroups !== null && setting === 'auto' && parent !== null) return chosenIn(unitCgroups, limitBytes, groups);
    const found = await openCgroupHome(parent, instance, isService, clock);
    if (found.kind === 'unusable') {
      if (!['auto', 'off'].includes(setting)) throw new ConfigFault([`MODEL_API_CGROUP: ${found.reason}`]);
      return { warnings: unmetLimits(limitBytes, false), fault: setting === 'off' ? null : found.reason };
    }
    const [hasMemory, hasPids] = [found.controllers.has('memory'), found.controllers.has('pids')];
    const limits = { hasMemory, hasPids, maxMemoryBytes: hasMemory ? limitBytes : null };
    const containments = new CgroupContainments(found.home, limits, clock, { containments: groups, log });
    return {
      containments,
      warnings: unmetLimits(limitBytes, hasMemory),
      get fault() {
        return containments.fault;
      },
    };
  };
}

/** Returns what the service of a unit with these cgroups will find. This process itself uses process groups. */
function chosenIn({ fault, controllers }: UnitCgroups, limitBytes: number | null, groups: ContainmentFactory): Chosen {
  const create: ContainmentFactory['create'] = (...program) => groups.create(...program);
  return {
    containments: { means: fault === null ? 'cgroup' : 'process-group', create, close: () => groups.close() },
    warnings: unmetLimits(limitBytes, controllers.has('memory')),
    fault,
  };
}

function unmetLimits(limitBytes: number | null, hasMemory: boolean): string[] {
  if (limitBytes === null || hasMemory) return [];
  return [
    'MODEL_API_CLI_MEMORY_MB has no effect: the service has no cgroup with that controller ' +
      '(under systemd, Delegate=yes gives it one)',
  ];
}
