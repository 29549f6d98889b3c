import { shellWord } from '../../shared/text/format.js';
import { keyFor, type SetupTarget } from './client-programs.js';

/** Returns what the user does to make a program use the service, a line each. */
type HandSteps = (target: SetupTarget) => readonly string[];

/** Returns a command line for a POSIX shell. */
const commandOf = (...words: readonly string[]) => words.map(shellWord).join(' ');

/** Returns a warning if a command has the API key in its arguments, as lines; no line if the service needs no key. */
const argumentWarning = ({ key }: SetupTarget) =>
  key === null ? [] : ['While the command runs, other users of this machine can read your API key in its arguments.'];

/** Programs that can use the service, but whose settings are no JSON, so that the command does not change them. */
export const handPrograms: ReadonlyMap<string, HandSteps> = new Map<string, HandSteps>([
  [
    'codex',
    ({ url, key, model }) => [
      'Write this into ~/.codex/config.toml, the first two lines above all tables:',
      `model = ${JSON.stringify(model)}`,
      'model_provider = "relay"',
      '',
      '[model_providers.relay]',
      'name = "relay"',
      `base_url = ${JSON.stringify(`${url}/v1`)}`,
      'wire_api = "responses"',
      'stream_max_retries = 0',
      ...(key === null ? [] : ['env_key = "RELAY_KEY"']),
      key === null ? 'Then start codex.' : 'Then start codex with your API key in the variable RELAY_KEY.',
      'codex warns that it has no metadata of the model: it then assumes usual sizes.',
    ],
  ],
  [
    'continue',
    (target) => [
      'Write this into ~/.continue/config.yaml, or add the model to the list there:',
      ...['name: relay', 'version: 0.0.1', 'schema: v1', 'models:'],
      `  - name: ${yaml(target.model)}`,
      '    provider: openai',
      `    model: ${yaml(target.model)}`,
      `    apiBase: ${yaml(`${target.url}/v1`)}`,
      `    apiKey: ${yaml(keyFor(target))}`,
      'Then start cn, or choose the model in the editor extension.',
    ],
  ],
  [
    'aider',
    (target) => [
      'Write this into ~/.aider.conf.yml, then start aider:',
      `openai-api-base: ${yaml(`${target.url}/v1`)}`,
      `openai-api-key: ${yaml(keyFor(target))}`,
      `model: ${yaml(`openai/${target.model}`)}`,
      'aider warns that the context window and the costs of the model are unknown.',
    ],
  ],
  [
    'qwen',
    (target) => [
      'Start qwen with these variables:',
      `OPENAI_BASE_URL=${shellWord(`${target.url}/v1`)} OPENAI_API_KEY=${shellWord(keyFor(target))} OPENAI_MODEL=${shellWord(target.model)} qwen`,
    ],
  ],
  [
    'cline',
    (target) => [
      'Run this command once, then start cline:',
      commandOf(
        ...['cline', 'auth', '--provider', 'openai-compatible', '--baseurl', `${target.url}/v1`],
        ...['--apikey', keyFor(target), '--modelid', target.model],
      ),
      ...argumentWarning(target),
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

/** Returns a string in YAML. A string that some readers would misread without quotes gets quotes. */
function yaml(text: string): string {
  const isPlain = /^[a-z][\w./-]*$/i.test(text) || /^https?:\/\/[\w.:/[\]-]*[\w/]$/.test(text);
  return isPlain && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text) ? text : JSON.stringify(text);
}
