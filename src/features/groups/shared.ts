import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';
import { readCount } from '../../shared/config/key-values.js';

/** Options of groups: jobs that may run at once, and turns of all members together in each round of the queue. */
export const keyOptions = {
  running: {
    read: (text) => String(readCount(text ?? '', 1, 1024)),
    ...{ flag: null, http: null, isForGroups: 'only' },
    document: ['running=4', 'only in lines of [groups](#groups): jobs of all members that run at once'],
  },
  share: {
    read: (text) => String(readCount(text ?? '', 1, 100)),
    ...{ flag: null, http: null, isForGroups: 'only' },
    document: [
      'share=1',
      'only in lines of [groups](#groups): turns in each round of the queue for all members together',
    ],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;
