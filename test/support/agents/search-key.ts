import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';

const key = 'the-key-of-ada-in-this-test';

/** Headers of the client that may search. */
export const searcher = { 'x-api-key': key };

/** Writes a keys file whose only key, that of `searcher`, has this option. Returns the variable that names the file. */
export async function searchKeys(
  folder: string,
  option = 'search=on',
): Promise<{ readonly MODEL_API_KEYS_FILE: string }> {
  const path = join(folder, 'keys');
  await writeFile(path, `ada:sha256:${digestOf(key)}:${option}\n`, { mode: 0o600 });
  return { MODEL_API_KEYS_FILE: path };
}
