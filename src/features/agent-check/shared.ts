import type { CoreFacts, FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import { integer } from '../../shared/config/values.js';

export const variables = {
  MODEL_API_AGENT_PORT: {
    ...{ schema: integer(0, 65_535), fallback: null, secrecy: 'none' },
    meaning: 'TCP port that tells [HAProxy](fleet.md) how busy this host is, on the address of `MODEL_API_HOST`',
  },
} as const satisfies FeatureVariables;

/** Returns warnings about settings that a host behind a front lacks. */
export function frontWarnings(
  { MODEL_API_AGENT_PORT: port }: ValuesOf<typeof variables>,
  { values, settings }: Pick<CoreFacts, 'values' | 'settings'>,
): string[] {
  if (port === null) return [];
  const lacksProxy = (values.MODEL_API_TRUST_PROXY ?? []).length === 0;
  const lacksStore = settings.store?.isShared !== true;
  return [
    ...(lacksProxy
      ? ['MODEL_API_AGENT_PORT without MODEL_API_TRUST_PROXY: behind a proxy, all clients count as one address']
      : []),
    ...(lacksStore
      ? [
          'MODEL_API_AGENT_PORT without a store that hosts share: other hosts do not know the conversations of this host',
        ]
      : []),
  ];
}
