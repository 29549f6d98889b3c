import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { shellWord } from '../../shared/text/format.js';

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

/** Program that can use the service, with its settings in JSON. */
export interface ClientProgram {
  /** Returns the path of the file with its settings. */
  path(folders: SettingsFolders): string;
  /** Returns the entries that the settings need. */
  entries(target: SetupTarget): JsonObject;
  /** Field with the address of the service. */
  readonly addressField: readonly string[];
  /** Returns the fields of `entries` in these settings. */
  ownFields(settings: JsonObject): readonly (readonly string[])[];
  /** Returns what the user does next. */
  nextStep(target: SetupTarget): string;
  /** Warning that the program may print although the settings are right; null if none is known. */
  readonly warning: string | null;
}

/** Error for settings that the command cannot change safely. The message is the reason. */
export class SettingsError extends Error {}

/** Returns the key for a program. The service accepts any key if none is configured, but the programs need one. */
export function keyFor({ key }: SetupTarget): string {
  return key ?? 'any';
}

const claudeVariables = [
  'ANTHROPIC_BASE_URL',
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_MODEL',
  'ANTHROPIC_DEFAULT_HAIKU_MODEL',
  'CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK',
  'CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY',
];

export const clientPrograms = {
  'claude-code': {
    path: ({ home }) => join(home, '.claude', 'settings.json'),
    entries: (target) => ({
      env: {
        ANTHROPIC_BASE_URL: target.url,
        ANTHROPIC_API_KEY: keyFor(target),
        ANTHROPIC_MODEL: target.model,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: target.model,
        CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: '1',
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1', // lists the models of the service in /model
      },
    }),
    addressField: ['env', 'ANTHROPIC_BASE_URL'],
    ownFields: () => claudeVariables.map((name) => ['env', name]),
    nextStep: () => 'Start "claude".',
    warning: 'If you are logged in, claude warns of an "auth conflict": it uses the key of the service.',
  },
  opencode: {
    path: ({ config }) => join(config, 'opencode', 'opencode.json'),
    entries: (target) => ({
      model: `relay/${target.model}`,
      provider: {
        relay: {
          npm: '@ai-sdk/openai-compatible',
          options: { baseURL: `${target.url}/v1`, apiKey: keyFor(target) },
          models: { [target.model]: {} },
        },
      },
    }),
    addressField: ['provider', 'relay', 'options', 'baseURL'],
    ownFields: ({ model }) => [['provider', 'relay'], ...(String(model).startsWith('relay/') ? [['model']] : [])],
    nextStep: () => 'Start "opencode".',
    warning: null,
  },
  pi: {
    path: ({ home }) => join(home, '.pi', 'agent', 'models.json'),
    entries: (target) => ({
      providers: {
        relay: {
          ...{ baseUrl: `${target.url}/v1`, api: 'openai-completions', apiKey: keyFor(target) },
          models: [{ id: target.model }],
        },
      },
    }),
    addressField: ['providers', 'relay', 'baseUrl'],
    ownFields: () => [['providers', 'relay']],
    nextStep: ({ model }) => `Start it with: pi --model ${shellWord(`relay/${model}`)}`,
    warning: null,
  },
} as const satisfies Record<string, ClientProgram>;

/**
 * Returns the text of the settings with the service in it. `before`: the present text, empty if the file does not exist.
 * Throws a SettingsError if a change might break the file.
 */
export function addService(program: ClientProgram, before: string, target: SetupTarget): string {
  return `${JSON.stringify(mergeObjects(parseObject(before), program.entries(target)), null, 2)}\n`;
}

/** Whether this text contains the entries for the service at this address. */
export function usesService({ addressField, entries }: ClientProgram, text: string, url: string): boolean {
  return fieldAt(parseObject(text), addressField) === fieldAt(entries({ url, key: null, model: '' }), addressField);
}

/**
 * Returns the text without the entries; empty if nothing else remains. The fields that they have replaced get the
 * values of `copy`, the text before.
 */
export function removeService(program: ClientProgram, text: string, copy: string): string {
  const [settings, old] = [parseObject(text), parseObject(copy)];
  const remaining = program
    .ownFields(settings)
    .reduce((object, path) => withField(object, path, fieldAt(old, path)), settings);
  if (isDeepStrictEqual(remaining, old)) return copy;
  return Object.keys(remaining).length === 0 ? '' : `${JSON.stringify(remaining, null, 2)}\n`;
}

type JsonObject = { readonly [field: string]: unknown };

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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

/** Sets a field; undefined removes it, with the objects around it that become empty. */
function withField(object: JsonObject, [name = '', ...inner]: readonly string[], value: unknown): JsonObject {
  const before = object[name];
  const next = inner.length === 0 ? value : withField(isObject(before) ? before : {}, inner, value);
  const isEmpty = inner.length > 0 && Object.keys(Object(next)).length === 0;
  const { [name]: _, ...others } = object;
  return next === undefined || isEmpty ? others : { ...object, [name]: next };
}
