import { addressFlags, type CommandFeature, jsonFlag } from '../../command/base/command.js';
import type { PrimaryFeature } from '../../primary/features/feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints } from './shared.js';

/** What is stored, how long, and who can read it: GET /retention and `prompt-relay retention`. */
export const retention = {
  ...{ name: 'retention', needs: ['stores', 'usage'] },
  ...{ variables: {}, findFaults: () => [], findWarnings: () => [], calls, endpoints },
  ...{ requestFields: {}, requestHeaders: {}, logEvents: {}, keyOptions: {}, tables: [] },
  loadPrimary: async () => (await import('./primary.js')).createRetention,
  loadWorker: () => import('./worker.js'),
  commands: [
    {
      ...{ name: 'retention', needs: ['usage'] },
      synopsis: '',
      summary: 'show what the service stores, how long, and who can read it',
      flags: { ...jsonFlag, ...addressFlags },
      maxPositionals: 0,
      examples: ['prompt-relay retention', 'prompt-relay retention --json'],
      run: async (args, context) => (await import('./command.js')).showRetention(args, context),
    },
    {
      name: 'export',
      synopsis: '--to <folder>',
      summary: 'write everything that the service has stored of you to a new folder',
      flags: {
        to: { type: 'string', placeholder: '<folder>', description: 'a folder that does not exist yet' },
        ...addressFlags,
      },
      maxPositionals: 0,
      examples: ['prompt-relay export --to my-data'],
      run: async (args, context) => (await import('./command.js')).exportData(args, context),
    },
  ],
} satisfies PrimaryFeature & WorkerFeature<typeof calls> & CommandFeature;
