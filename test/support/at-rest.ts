import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The files below a folder whose text holds this, now. Links are not followed. */
export async function filesHolding(folder: string, text: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const found = await Promise.all(files.map(async (file) => (await readText(file)).includes(text)));
  return files.filter((_, index) => found[index]);
}

/** A file may go while it is read. */
function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '');
}
