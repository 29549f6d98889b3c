import type { SetupTarget } from './client-programs.js';

/** Returns what the user does to make a program use the service, a line each. */
type HandSteps = (target: SetupTarget) => readonly string[];

/** The service accepts any key if none is configured, but the programs need one. */
const keyOf = ({ key }: SetupTarget) => key ?? 'any';

/** Programs that can use the service, but whose settings the command does not change. */
export const handPrograms: ReadonlyMap<string, HandSteps> = new Map<string, HandSteps>([
  [
    'qwen',
    (target) => [
      'Start qwen with these variables:',
      `OPENAI_BASE_URL=${target.url}/v1 OPENAI_API_KEY=${keyOf(target)} OPENAI_MODEL=${target.model} qwen`,
    ],
  ],
  [
    'cline',
    (target) => [
      'Run this command once, then start cline:',
      `cline auth --provider openai-compatible --baseurl ${target.url}/v1 --apikey ${keyOf(target)} --modelid ${target.model}`,
    ],
  ],
  [
    'pi',
    (target) => [
      `Add this provider to ~/.pi/agent/models.json, then start "pi --model relay/${target.model}":`,
      JSON.stringify({
        providers: {
          relay: {
            ...{ baseUrl: `${target.url}/v1`, api: 'openai-completions', apiKey: keyOf(target) },
            models: [{ id: target.model }],
          },
        },
      }),
    ],
  ],
  [
    'gemini-cli',
    (target) => [
      'gemini-cli gets its answers only from Google. It can use the models of the service as a tool:',
      `gemini mcp add --transport http relay ${target.url}/mcp${target.key === null ? '' : ` --header "Authorization: Bearer ${target.key}"`}`,
    ],
  ],
]);
