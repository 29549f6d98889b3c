import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../basics/folder.js';

/** Keys file with one key, for ada, and optionally more lines. */
export interface BudgetKey extends AsyncDisposable {
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** Replaces the options of the key, and the other lines. */
  change(options: string, lines?: string): Promise<void>;
}

export async function writeBudgetKey(options: string, lines = ''): Promise<BudgetKey> {
  const key = 'a-key-for-the-tests-of-budgets';
  const folder = await temporaryFolder();
  const path = join(folder.path, 'keys');
  const change = (changed: string, more = '') =>
    writeFile(path, `ada:sha256:${digestOf(key)}:${changed}\n${more}`, { mode: 0o600 });
  await change(options, lines);
  return {
    key,
    headers: { 'X-API-Key': key },
    env: { MODEL_API_KEYS_FILE: path },
    change,
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
