import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';
import { readCount } from '../../shared/config/key-values.js';

/** Option of groups: jobs that may run at once. */
export const keyOptions = {
  running: {
    read: (text) => String(readCount(text ?? '', 1, 1024)),
    ...{ flag: null, http: null, isForGroups: 'only' },
    document: ['running=4', 'only in lines of [groups](#groups): jobs of all members that run at once'],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;
