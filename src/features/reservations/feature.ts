import { addressFlags, type CommandFeature, jsonFlag } from '../../command/base/command.js';
import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints, logEvents, metrics } from './shared.js';

/** Slots that an administrator reserves for the jobs of a group, for a time. */
export const reservations = {
  ...emptyFeature,
  ...{ name: 'reservations', needs: ['stores'], calls, endpoints, logEvents, metrics },
  loadPrimary: async () => (await import('./primary.js')).createReservations,
  loadWorker: () => import('./worker.js'),
  commands: [
    {
      name: 'reserve',
      synopsis: '@<group> slots=<count> <begin>/<time> | list | cancel <id>',
      summary: 'reserve slots for a group, for a time',
      flags: { ...jsonFlag, ...addressFlags },
      maxPositionals: 3,
      words: ['list', 'cancel'],
      notes: [
        'During this time, the jobs of the group go before all others until so many of them run. Slots that they do not use go to the others. The begin is in UTC unless it has an offset. Needs a key with the scope admin; "list" needs none.',
      ],
      examples: [
        'prompt-relay reserve @bio101 slots=4 2027-01-12T10:00/2h',
        'prompt-relay reserve @bio101 slots=4 2027-01-12T11:00+01:00/90m',
        'prompt-relay reserve list',
      ],
      run: async (args, context) => (await import('./command.js')).runReserve(args, context),
    },
  ],
} satisfies PrimaryFeature & WorkerFeature<typeof calls> & CommandFeature;
