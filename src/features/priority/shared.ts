import { z } from 'zod';
import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';

/** Rank of a job among those that wait, and the longest wait that its client accepts. */

export const priorityHeader = 'X-Priority';
export const priorities = ['flex', 'default', 'priority'] as const;
export type Priority = (typeof priorities)[number];

export const requestHeaders = {
  [priorityHeader]: z
    .enum(priorities, `must be one of ${priorities.join(', ')}`)
    .meta({
      description:
        '`flex`: the job waits behind the jobs of all clients. `priority`: it waits before the other jobs of its client, for API keys with the option `priority=on`. Background jobs wait behind all in any case. `Prefer: wait=20` limits the wait to 20 seconds. APIs for SDKs also have the field `service_tier`.',
    })
    .optional(),
};

/** Option of keys: whether jobs may go before the other jobs of their client. */
export const keyOptions = {
  priority: {
    read: (text) => {
      if (text === 'on') return text;
      throw new Error('must be on');
    },
    flag: { type: 'string', placeholder: 'on', description: 'jobs may wait before others of the same client' },
    http: {
      description: '`on`: jobs may wait before the other jobs of the same client.',
      isWithin: (text, maker) => text === null || text === maker,
    },
    document: [
      'priority=on',
      'jobs with `X-Priority: priority` or `service_tier: priority` wait before the other jobs of the same client, not before those of others; see [priority](api.md#priority-and-waiting)',
    ],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;
