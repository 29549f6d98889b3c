import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import { list } from '../../shared/config/values.js';

/** Agents of the Agent Client Protocol that have a name here, and `acp` for any other agent. */
export const acpAgents = ['acp', 'gemini', 'opencode', 'qwen'] as const;
export type AcpAgent = (typeof acpAgents)[number];

export function isAgent(kind: string): kind is AcpAgent {
  return acpAgents.some((agent) => agent === kind);
}

/** Paths below a folder. */
const homePaths = list.refine(
  (items) =>
    items.every((item) => !item.startsWith('/') && !item.split('/').some((part) => ['', '.', '..'].includes(part))),
  'must be paths below HOME separated by commas, such as .config/agent/auth.json',
);

export const variables = {
  MODEL_API_CLI_HOME_FILES: {
    schema: homePaths,
    fallback: '',
    secrecy: 'none',
    meaning: 'files below the HOME of the service, such as a login, for a CLI with a private HOME',
    shownDefault: 'those of its kind ([model CLIs](clis.md))',
  },
} as const satisfies FeatureVariables;
export type AcpValues = ValuesOf<typeof variables>;
