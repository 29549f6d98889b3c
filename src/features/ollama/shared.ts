import type { FeaturePort, FeatureVariables } from '../../shared/config/feature-variables.js';
import { integer } from '../../shared/config/values.js';

export const variables = {
  MODEL_API_OLLAMA_PORT: {
    ...{ schema: integer(0, 65_535), fallback: null, secrecy: 'none' },
    meaning: 'also listen on this TCP port for [clients of Ollama](sdks.md#clients-of-ollama), which expect 11434',
  },
} as const satisfies FeatureVariables;

export const port: FeaturePort = {
  ...{ name: 'ollama', variable: 'MODEL_API_OLLAMA_PORT', clients: 'Ollama’s clients' },
  urlText: 'Address of the port for clients of Ollama.',
};
