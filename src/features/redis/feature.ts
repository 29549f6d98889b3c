import type { CommandFeature } from '../../command/base/command.js';
import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { family } from './shared.js';

/** Store in Redis, which several hosts share. */
export const redis = {
  ...emptyFeature,
  name: 'redis',
  needs: ['stores'],
  store: {
    ...family,
    label: 'Redis',
    note: 'A store in Redis needs a running service, on any host. Redis creates its own backups.',
    backupAdvice:
      'Redis creates its own backups: copy its appendonlydir, or the dump.rdb of BGSAVE, as its documentation says',
    open: async (place, parts) => (await import('./hosts.js')).openHosts(place, parts),
  },
} satisfies PrimaryFeature & WorkerFeature & CommandFeature;
