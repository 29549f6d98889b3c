import type { KeyOptions } from '../../shared/config/api-keys.js';
import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';
import { readCount } from '../../shared/config/key-values.js';

/** Option of people: how many keys they may make over HTTP. */
const ownKeysName = 'own_keys';

export const keyOptions = {
  [ownKeysName]: {
    read: (value) => String(readCount(value ?? '', 1, 100)),
    ...{ flag: null, http: null, isForPeople: true, isForOne: true },
    document: [
      'own_keys=3',
      'only in lines for [people](#sign-on-by-the-proxy): this many keys the person may [make over HTTP](#keys-over-http)',
    ],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;

/** Returns the number of keys that a person may make; 0 without the option. */
export function ownKeysIn({ featureOptions }: Pick<KeyOptions, 'featureOptions'>): number {
  return Number(featureOptions[ownKeysName] ?? 0);
}
