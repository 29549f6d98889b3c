import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Adapter } from '../contract/adapter.js';
import { jsonOf } from './common/lines.js';

/**
 * Returns warnings about settings of this host that apply to the jobs of this model CLI. Claude's settings are examined
 * in detail.
 */
export async function hostSettings({
  name,
  hostFolder: folder,
}: Pick<Adapter, 'name' | 'hostFolder'>): Promise<readonly string[]> {
  if (name === 'claude') return managedWarnings();
  const files = folder === undefined ? [] : await readdir(folder).catch(() => []);
  return files.length === 0 ? [] : [`${folder} may apply to each job of ${name}: ${files.sort().join(', ')}`];
}

/** Folder of claude's managed settings, which no flag disables. */
const managedFolder = '/etc/claude-code';
const serversFile = 'managed-mcp.json';

/** Effects of settings on a job. For any other setting, only the name is reported. */
const meanings: Readonly<Record<string, string>> = {
  hooks: 'they see prompts and answers',
  availableModels: 'another model may answer',
  model: 'another model may answer',
  modelOverrides: 'another model may answer',
};

/** Returns how the managed settings of this host affect each job of claude, one sentence for each file. */
export async function managedWarnings(folder = managedFolder): Promise<readonly string[]> {
  const files = await settingsFiles(folder);
  const warnings = files.flatMap(({ path, settings }) => {
    const named = Object.entries(settings ?? {}).map(([name, value]) => withMeaning(name, value));
    return named.length === 0 ? [] : [`${path} applies to each job of claude: ${named.join(', ')}`];
  });
  const fault = await faultIn(folder, files);
  return fault === null ? warnings : [...warnings, `${folder}: ${fault}`];
}

/** Returns why the managed settings of this host prevent all jobs of claude; null if they do not. */
export async function managedFault(folder = managedFolder): Promise<string | null> {
  return faultIn(folder, await settingsFiles(folder));
}

interface SettingsFile {
  readonly path: string;
  /** null if the file is not a JSON object. */
  readonly settings: object | null;
}

async function faultIn(folder: string, files: readonly SettingsFile[]): Promise<string | null> {
  if (files.some(({ settings }) => settings === null))
    return 'the managed settings of this host are not valid JSON, so the model CLI cannot run jobs';
  return access(join(folder, serversFile)).then(
    () => `the managed MCP servers of this host (${serversFile}) keep the model CLI from running a job without tools`,
    () => null,
  );
}

function withMeaning(name: string, value: unknown): string {
  const meaning = name === 'env' && value instanceof Object ? Object.keys(value).join(' ') : meanings[name];
  return meaning === undefined ? name : `${name} (${meaning})`;
}

/** Reads the managed settings. Skips unreadable files: claude, which runs as the same user, cannot read them either. */
async function settingsFiles(folder: string): Promise<readonly SettingsFile[]> {
  const further = join(folder, 'managed-settings.d');
  const names = (await readdir(further).catch(() => [])).filter((name) => /^[^.].*\.json$/.test(name)).sort();
  const paths = [join(folder, 'managed-settings.json'), ...names.map((name) => join(further, name))];
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8').catch(() => null)));
  return paths.flatMap((path, index) => {
    const text = texts[index] ?? null;
    if (text === null) return [];
    const settings = text.trim() === '' ? {} : jsonOf(text);
    return [{ path, settings: settings instanceof Object && !Array.isArray(settings) ? settings : null }];
  });
}
