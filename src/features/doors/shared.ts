import type { FeatureVariables } from '../../shared/config/feature-variables.js';
import { oneOf } from '../../shared/config/values.js';

const onOrOff = oneOf(['on', 'off']);

export const variables = {
  MODEL_API_TOOLS: {
    ...{ schema: onOrOff, fallback: 'on', secrecy: 'none', setting: 'tools' },
    meaning: '`off`: refuses requests with `tools`',
  },
  MODEL_API_SAMPLING: {
    ...{ schema: onOrOff, fallback: 'on', secrecy: 'none', setting: 'sampling' },
    meaning:
      '`off`: ignores `temperature`, `top_p` and the maximum of tokens, and names them in `X-Ignored-Parameters`',
  },
} as const satisfies FeatureVariables;
