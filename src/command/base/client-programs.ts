import { join } from 'node:path';

/** Values that a program needs to use the service. */
export interface SetupTarget {
  /** Address of the service, without a slash at the end. */
  readonly url: string;
  /** API key; null if the service needs none. */
  readonly key: string | null;
  readonly model: string;
}

/** Folders with the settings of the user's programs. */
export interface SettingsFolders {
  readonly home: string;
  /** Folder of XDG_CONFIG_HOME. */
  readonly config: string;
}

/** Program that can use the service. */
export interface ClientProgram {
  /** Returns the path of the file with its settings. */
  path(folders: SettingsFolders): string;
  /**
   * Returns the text of this file with the service in it. `before` is the present text, empty if the file does not exist.
   * Throws a SettingsError if a change might break the file.
   */
  addService(before: string, target: SetupTarget): string;
  /** Returns what the user does next. */
  nextStep(target: SetupTarget): string;
}

/** Error for settings that the command cannot change safely. The message is the reason. */
export class SettingsError extends Error {}

/** The service accepts any key if none is configured, but the programs need one. */
const anyKey = 'any';

export const clientPrograms = {
  'claude-code': {
    path: ({ home }) => join(home, '.claude', 'settings.json'),
    addService: (before, { url, key, model }) =>
      mergeJson(before, {
        env: {
          ANTHROPIC_BASE_URL: url,
          ANTHROPIC_API_KEY: key ?? anyKey,
          ANTHROPIC_MODEL: model,
          ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
          CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: '1',
          CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1', // lists the models of the service in /model
        },
      }),
    nextStep: () => 'Start "claude".',
  },
  codex: {
    path: ({ home }) => join(home, '.codex', 'config.toml'),
    addService: addToCodex,
    nextStep: ({ key }) =>
      key === null ? 'Start "codex".' : 'Start "codex" with your API key in the variable RELAY_KEY.',
  },
  opencode: {
    path: ({ config }) => join(config, 'opencode', 'opencode.json'),
    addService: (before, { url, key, model }) =>
      mergeJson(before, {
        model: `relay/${model}`,
        provider: {
          relay: {
            npm: '@ai-sdk/openai-compatible',
            options: { baseURL: `${url}/v1`, apiKey: key ?? anyKey },
            models: { [model]: {} },
          },
        },
      }),
    nextStep: () => 'Start "opencode".',
  },
  continue: {
    path: ({ home }) => join(home, '.continue', 'config.yaml'),
    addService: addToContinue,
    nextStep: () => 'Start "cn", or choose the model in the editor extension.',
  },
  aider: {
    path: ({ home }) => join(home, '.aider.conf.yml'),
    addService: (before, { url, key, model }) =>
      setYamlFields(before, {
        'openai-api-base': `${url}/v1`,
        'openai-api-key': key ?? anyKey,
        model: `openai/${model}`,
      }),
    nextStep: () => 'Start "aider".',
  },
} as const satisfies Record<string, ClientProgram>;

type JsonObject = { readonly [field: string]: unknown };

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mergeJson(before: string, addition: JsonObject): string {
  return `${JSON.stringify(mergeObjects(parseObject(before), addition), null, 2)}\n`;
}

function parseObject(text: string): JsonObject {
  if (text.trim() === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new SettingsError('it is not JSON, or has comments');
  }
  if (!isObject(value)) throw new SettingsError('it contains no JSON object');
  return value;
}

function mergeObjects(before: JsonObject, addition: JsonObject): JsonObject {
  const merged = Object.entries(addition).map(([field, value]) => {
    const old = before[field];
    return [field, isObject(old) && isObject(value) ? mergeObjects(old, value) : value];
  });
  return { ...before, ...Object.fromEntries(merged) };
}

const codexSection = 'model_providers.relay';

/**
 * Sets the model and its provider in TOML. Fields outside of a table may only stand before the first table, so they are
 * written to the top.
 */
function addToCodex(before: string, { url, key, model }: SetupTarget): string {
  if (/"""|'''/.test(before)) throw new SettingsError('it has strings of several lines');
  const lines = before.split('\n');
  const firstTable = lines.findIndex(isTomlTable);
  const fields = lines.slice(0, firstTable < 0 ? lines.length : firstTable);
  const tables = withoutTable(firstTable < 0 ? [] : lines.slice(firstTable), codexSection);
  const otherFields = fields.filter((line) => !/^\s*(model|model_provider)\s*=/.test(line));
  const section = [
    `[${codexSection}]`,
    'name = "relay"',
    `base_url = ${JSON.stringify(`${url}/v1`)}`,
    'wire_api = "responses"',
    'stream_max_retries = 0',
    ...(key === null ? [] : ['env_key = "RELAY_KEY"']),
  ];
  const blocks = [
    [`model = ${JSON.stringify(model)}`, 'model_provider = "relay"', ...otherFields],
    tables,
    section,
  ].map((block) => block.join('\n').trim());
  return `${blocks.filter((block) => block !== '').join('\n\n')}\n`;
}

function isTomlTable(line: string): boolean {
  return /^\s*\[[^=]*\]\s*(#.*)?$/.test(line);
}

/** Returns the lines without the table of this name, up to the next table. */
function withoutTable(lines: readonly string[], name: string): string[] {
  let isInside = false;
  return lines.filter((line) => {
    if (isTomlTable(line)) isInside = line.replaceAll(/[\s"']/g, '').startsWith(`[${name}]`);
    return !isInside;
  });
}

/** Adds a model to the list `models` in YAML, or creates the list. */
function addToContinue(before: string, { url, key, model }: SetupTarget): string {
  const base = `${url}/v1`;
  const item = [
    `- name: ${yaml(model)}`,
    '  provider: openai',
    `  model: ${yaml(model)}`,
    `  apiBase: ${yaml(base)}`,
    `  apiKey: ${yaml(key ?? anyKey)}`,
  ];
  if (before.trim() === '') {
    return `${['name: relay', 'version: 0.0.1', 'schema: v1', 'models:', ...indented(item, '  ')].join('\n')}\n`;
  }
  if (before.includes(base)) throw new SettingsError(`it already names ${base}`);
  const lines = before.split('\n');
  const list = lines.findIndex((line) => /^models\s*:/.test(line));
  if (list < 0) return `${before.trimEnd()}\nmodels:\n${indented(item, '  ').join('\n')}\n`;
  if (!/^models\s*:\s*(#.*)?$/.test(lines[list] ?? '')) throw new SettingsError('its list of models is on one line');
  const firstItem = lines.slice(list + 1).find((line) => /^\s*- /.test(line) || /^\S/.test(line)) ?? '';
  const indent = /^(\s*)- /.exec(firstItem)?.[1] ?? '  ';
  return lines.toSpliced(list + 1, 0, ...indented(item, indent)).join('\n');
}

function indented(lines: readonly string[], indent: string): string[] {
  return lines.map((line) => indent + line);
}

/** Sets fields of the outermost level in YAML. */
function setYamlFields(before: string, fields: Readonly<Record<string, string>>): string {
  const lines = before.split('\n').filter((line) => !Object.keys(fields).some((name) => line.startsWith(`${name}:`)));
  const otherText = lines.join('\n').trimEnd();
  const fieldLines = Object.entries(fields).map(([name, value]) => `${name}: ${yaml(value)}\n`);
  return `${otherText}${otherText === '' ? '' : '\n'}${fieldLines.join('')}`;
}

/** Returns a string in YAML. A string that some readers would misread without quotes gets quotes. */
function yaml(text: string): string {
  const isPlain = /^[a-z][\w./-]*$/i.test(text) || /^https?:\/\/[\w.:/[\]-]*[\w/]$/.test(text);
  return isPlain && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text) ? text : JSON.stringify(text);
}
