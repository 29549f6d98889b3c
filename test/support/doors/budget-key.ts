import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../basics/folder.js';

/** Keys file with one key, for ada, that has a budget. */
export interface BudgetKey extends AsyncDisposable {
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** Replaces the options of the key. */
  change(options: string): Promise<void>;
}

export async function writeBudgetKey(options: string): Promise<BudgetKey> {
  const key = 'a-key-for-the-tests-of-budgets';
  const folder = await temporaryFolder();
  const path = join(folder.path, 'keys');
  const change = (changed: string) => writeFile(path, `ada:sha256:${digestOf(key)}:${changed}\n`, { mode: 0o600 });
  await change(options);
  return {
    key,
    headers: { 'X-API-Key': key },
    env: { MODEL_API_KEYS_FILE: path },
    change,
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
