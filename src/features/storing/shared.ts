import type { CoreFacts } from '../../shared/config/feature-variables.js';
import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';

/** Clients of which the service stores nothing. */

const optionName = 'store';
/** Names in one warning. */
const maxNames = 10;

export const keyOptions = {
  [optionName]: {
    read: (text) => {
      if (text === 'off') return text;
      throw new Error('must be off');
    },
    flag: { type: 'string', placeholder: 'off', description: 'off: nothing of its requests is stored' },
    http: {
      description: '`off`: nothing of the requests of the key is stored.',
      isWithin: (text, maker) => maker === null || text === maker,
    },
    isForGroups: true,
    document: [
      'store=off',
      'nothing of its prompts and answers is stored; what must be stored is refused; see [nothing stored](data.md#nothing-stored)',
    ],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;

/** Whether the options of a key, a person or a group prevent that anything is stored. */
export function preventsStoring(options: Readonly<Record<string, string>>): boolean {
  return options[optionName] === 'off';
}

/** Warns that the option does not delete what was stored before. */
export function findWarnings(
  _: unknown,
  { settings: { store }, optionLines }: Pick<CoreFacts, 'settings' | 'optionLines'>,
): string[] {
  const names = optionLines.filter(({ featureOptions }) => preventsStoring(featureOptions)).map(({ name }) => name);
  const isDurable = store !== undefined && store.kind !== 'memory';
  if (names.length === 0 || !isDurable) return [];
  const shown = names.length > maxNames ? [...names.slice(0, maxNames), '…'] : names;
  return [
    `MODEL_API_KEYS_FILE: store=off (${shown.join(', ')}) deletes nothing that was stored before: see prompt-relay store purge`,
  ];
}
