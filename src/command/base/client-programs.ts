import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

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
  /** Whether this text contains the entries of `addService` for the service at this address. */
  usesService(text: string, url: string): boolean;
  /**
   * Returns the text without the entries of `addService`; empty if nothing else remains. The fields that they have
   * replaced get the values of `copy`, the text before.
   */
  removeService(text: string, copy: string, url: string): string;
  /** Whether the settings contain the API key. */
  readonly hasKey: boolean;
  /** Returns what the user does next. */
  nextStep(target: SetupTarget): string;
  /** Warning that the program may print although the settings are right; null if none is known. */
  readonly warning: string | null;
}

/** Error for settings that the command cannot change safely. The message is the reason. */
export class SettingsError extends Error {}

/** The service accepts any key if none is configured, but the programs need one. */
const anyKey = 'any';

const claudeVariables = [
  'ANTHROPIC_BASE_URL',
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_MODEL',
  'ANTHROPIC_DEFAULT_HAIKU_MODEL',
  'CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK',
  'CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY',
];
const aiderFields = ['openai-api-base', 'openai-api-key', 'model'];

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
    usesService: (text, url) => fieldAt(parseObject(text), ['env', 'ANTHROPIC_BASE_URL']) === url,
    removeService: (text, copy) =>
      removeFields(
        text,
        copy,
        claudeVariables.map((name) => ['env', name]),
      ),
    hasKey: true,
    nextStep: () => 'Start "claude".',
    warning: 'If you are logged in, claude warns of an "auth conflict": it uses the key of the service.',
  },
  codex: {
    path: ({ home }) => join(home, '.codex', 'config.toml'),
    addService: addToCodex,
    usesService: (text, url) => codexParts(text).own.includes(`base_url = ${JSON.stringify(`${url}/v1`)}`),
    removeService: removeFromCodex,
    hasKey: false,
    nextStep: ({ key }) =>
      key === null ? 'Start "codex".' : 'Start "codex" with your API key in the variable RELAY_KEY.',
    warning: 'codex warns that it has no metadata of the model: it then assumes usual sizes.',
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
    usesService: (text, url) => fieldAt(parseObject(text), ['provider', 'relay', 'options', 'baseURL']) === `${url}/v1`,
    removeService: (text, copy) => {
      const isDefault = String(parseObject(text).model).startsWith('relay/');
      return removeFields(text, copy, [['provider', 'relay'], ...(isDefault ? [['model']] : [])]);
    },
    hasKey: true,
    nextStep: () => 'Start "opencode".',
    warning: null,
  },
  continue: {
    path: ({ home }) => join(home, '.continue', 'config.yaml'),
    addService: addToContinue,
    usesService: (text, url) => findContinueItem(text.split('\n'), url) !== null,
    removeService: removeFromContinue,
    hasKey: true,
    nextStep: () => 'Start "cn", or choose the model in the editor extension.',
    warning: null,
  },
  aider: {
    path: ({ home }) => join(home, '.aider.conf.yml'),
    addService: (before, { url, key, model }) =>
      setYamlFields(before, {
        'openai-api-base': `${url}/v1`,
        'openai-api-key': key ?? anyKey,
        model: `openai/${model}`,
      }),
    usesService: (text, url) => text.split('\n').includes(`openai-api-base: ${yaml(`${url}/v1`)}`),
    removeService: (text, copy) => {
      const isOwn = (line: string) => aiderFields.some((name) => line.startsWith(`${name}:`));
      const foreignLines = text.split('\n').filter((line) => !isOwn(line));
      return copyIfEqual(joinBlocks([foreignLines, copy.split('\n').filter(isOwn)], '\n'), copy);
    },
    hasKey: true,
    nextStep: () => 'Start "aider".',
    warning: 'aider warns that the context window and the costs of the model are unknown.',
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

function fieldAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((inner, name) => (isObject(inner) ? inner[name] : undefined), value);
}

/** Removes fields from JSON, or gives them the values that they have in `copy`. */
function removeFields(text: string, copy: string, paths: readonly (readonly string[])[]): string {
  const old = parseObject(copy);
  const remaining = paths.reduce((object, path) => withField(object, path, fieldAt(old, path)), parseObject(text));
  if (isDeepStrictEqual(remaining, old)) return copy;
  return Object.keys(remaining).length === 0 ? '' : `${JSON.stringify(remaining, null, 2)}\n`;
}

/** Sets a field; undefined removes it, with the objects around it that become empty. */
function withField(object: JsonObject, [name = '', ...inner]: readonly string[], value: unknown): JsonObject {
  const before = object[name];
  const next = inner.length === 0 ? value : withField(isObject(before) ? before : {}, inner, value);
  const isEmpty = inner.length > 0 && Object.keys(Object(next)).length === 0;
  const { [name]: _, ...others } = object;
  return next === undefined || isEmpty ? others : { ...object, [name]: next };
}

/** Returns `copy` if the text has the same lines, in any order. */
function copyIfEqual(text: string, copy: string): string {
  const linesOf = (each: string) => each.split('\n').flatMap((line) => line.trim() || []);
  return isDeepStrictEqual(linesOf(text).sort(), linesOf(copy).sort()) ? copy : text;
}

function joinBlocks(blocks: readonly (readonly string[])[], between = '\n\n'): string {
  const texts = blocks.map((lines) => lines.join('\n').trim()).filter((text) => text !== '');
  return texts.length === 0 ? '' : `${texts.join(between)}\n`;
}

const codexSection = 'model_providers.relay';
const isCodexField = (line: string) => /^\s*(model|model_provider)\s*=/.test(line);

/**
 * Sets the model and its provider in TOML. Fields outside of a table may only stand before the first table, so they are
 * written to the top.
 */
function addToCodex(before: string, { url, key, model }: SetupTarget): string {
  const { fields, tables } = codexParts(before);
  const section = [
    `[${codexSection}]`,
    'name = "relay"',
    `base_url = ${JSON.stringify(`${url}/v1`)}`,
    'wire_api = "responses"',
    'stream_max_retries = 0',
    ...(key === null ? [] : ['env_key = "RELAY_KEY"']),
  ];
  const chosen = [`model = ${JSON.stringify(model)}`, 'model_provider = "relay"'];
  return joinBlocks([[...chosen, ...fields.filter((line) => !isCodexField(line))], tables, section]);
}

function removeFromCodex(text: string, copy: string): string {
  const [{ fields, tables }, before] = [codexParts(text), codexParts(copy)];
  const isChosen = fields.some((line) => /^\s*model_provider\s*=\s*["']relay["']/.test(line));
  const otherFields = fields.filter((line) => !isCodexField(line));
  const newFields = isChosen ? [...before.fields.filter(isCodexField), ...otherFields] : fields;
  return copyIfEqual(joinBlocks([newFields, tables, before.own]), copy);
}

/** Splits TOML into the fields before the first table, the table of the service (`own`) and the other tables. */
function codexParts(text: string) {
  if (/"""|'''/.test(text)) throw new SettingsError('it has strings of several lines');
  const lines = text.split('\n');
  const firstTable = lines.findIndex(isTomlTable);
  const all = firstTable < 0 ? [] : lines.slice(firstTable);
  let isOwn = false;
  const marked = all.map((line) => {
    if (isTomlTable(line)) isOwn = line.replaceAll(/[\s"']/g, '').startsWith(`[${codexSection}]`);
    return { line, isOwn };
  });
  return {
    fields: firstTable < 0 ? lines : lines.slice(0, firstTable),
    own: marked.flatMap((each) => (each.isOwn ? [each.line] : [])),
    tables: marked.flatMap((each) => (each.isOwn ? [] : [each.line])),
  };
}

function isTomlTable(line: string): boolean {
  return /^\s*\[[^=]*\]\s*(#.*)?$/.test(line);
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
    return `${[...continueHead, ...indented(item, '  ')].join('\n')}\n`;
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

/** First lines of a new file. */
const continueHead = ['name: relay', 'version: 0.0.1', 'schema: v1', 'models:'];

function removeFromContinue(text: string, copy: string, url: string): string {
  const lines = text.split('\n');
  const { begin, end } = findContinueItem(lines, url) ?? { begin: 0, end: 0 };
  const remaining = lines.toSpliced(begin, end - begin);
  const list = remaining.findIndex((line) => /^models\s*:/.test(line));
  const next = remaining.slice(list + 1).find((line) => !/^\s*(#|$)/.test(line)) ?? '';
  const isEmptied = !/^\s*-/.test(next) && !/^models\s*:/m.test(copy);
  const keptLines = isEmptied ? remaining.filter((_, index) => index !== list) : remaining;
  const isOnlyHead = copy === '' && keptLines.every((line) => line.trim() === '' || continueHead.includes(line));
  return isOnlyHead ? '' : copyIfEqual(keptLines.join('\n'), copy);
}

/** Returns the lines of the model with the address of the service; null if no model has it. */
function findContinueItem(
  lines: readonly string[],
  url: string,
): { readonly begin: number; readonly end: number } | null {
  const at = lines.findIndex((line) => line.trim() === `apiBase: ${yaml(`${url}/v1`)}`);
  const begin = lines.slice(0, at + 1).findLastIndex((line) => /^\s*- /.test(line));
  if (at < 0 || begin < 0) return null;
  const indent = (lines[begin] ?? '').search(/\S/);
  const next = lines.findIndex((line, index) => index > at && line.trim() !== '' && line.search(/\S/) <= indent);
  return { begin, end: next < 0 ? lines.length : next };
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
