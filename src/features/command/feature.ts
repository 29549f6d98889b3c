import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { findCommandFaults } from './models.js';

/** Any program that reads a prompt and prints the answer. */
export const command = {
  ...emptyFeature,
  name: 'command',
  clis: {
    kinds: ['command'],
    commandNeeded: ['command'],
    anyProgram: 'command',
    example: 'local=command:ollama run {model}',
    findFaults: findCommandFaults,
    loadAdapters: () => (require('./adapter.js') as typeof import('./adapter.js')).createCommand,
  },
} satisfies PrimaryFeature & WorkerFeature;
