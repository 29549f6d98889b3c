import { shellWord } from '../../shared/text/format.js';
import type { SetupTarget } from './client-programs.js';

/** Returns what the user does to make a program use the service, a line each. */
type HandSteps = (target: SetupTarget) => readonly string[];

/** The service accepts any key if none is configured, but the programs need one. */
const keyOf = ({ key }: SetupTarget) => key ?? 'any';

/** Returns a command line for a POSIX shell. */
const commandOf = (...words: readonly string[]) => words.map(shellWord).join(' ');

/** Returns a warning about the key in the arguments of a command; nothing without a key. */
const argumentWarning = ({ key }: SetupTarget) =>
  key === null ? [] : ['While the command runs, other users of this machine can read your API key in its arguments.'];

/** Programs that can use the service, but whose settings the command does not change. */
export const handPrograms: ReadonlyMap<string, HandSteps> = new Map<string, HandSteps>([
  [
    'qwen',
    (target) => [
      'Start qwen with these variables:',
      `OPENAI_BASE_URL=${shellWord(`${target.url}/v1`)} OPENAI_API_KEY=${shellWord(keyOf(target))} OPENAI_MODEL=${shellWord(target.model)} qwen`,
    ],
  ],
  [
    'cline',
    (target) => [
      'Run this command once, then start cline:',
      commandOf(
        ...['cline', 'auth', '--provider', 'openai-compatible', '--baseurl', `${target.url}/v1`],
        ...['--apikey', keyOf(target), '--modelid', target.model],
      ),
      ...argumentWarning(target),
    ],
  ],
  [
    'pi',
    (target) => [
      `Add this provider to ~/.pi/agent/models.json, then run: ${commandOf('pi', '--model', `relay/${target.model}`)}`,
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
      commandOf(
        ...['gemini', 'mcp', 'add', '--transport', 'http', 'relay', `${target.url}/mcp`],
        ...(target.key === null ? [] : ['--header', `Authorization: Bearer ${target.key}`]),
      ),
      ...argumentWarning(target),
    ],
  ],
]);
