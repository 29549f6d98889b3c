import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

export type FoundProgram =
  | { readonly kind: 'found'; readonly path: string; readonly fingerprint: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-executable' };

/** Finds a program as a shell would: by path where the name holds a slash, else along PATH. */
export async function findProgram(name: string, searchPath: string): Promise<FoundProgram> {
  const candidates = name.includes('/') ? [name] : searchPath.split(delimiter).map((folder) => join(folder, name));
  let isThere = false;
  for (const path of candidates) {
    const found = await inspectFile(path);
    if (found.kind === 'found') return found;
    isThere ||= found.kind === 'not-executable';
  }
  return { kind: isThere ? 'not-executable' : 'missing' };
}

async function inspectFile(path: string): Promise<FoundProgram> {
  try {
    const file = await stat(path);
    if (!file.isFile()) return { kind: 'missing' };
    await access(path, constants.X_OK);
    return { kind: 'found', path, fingerprint: [path, file.ino, file.size, file.mtimeMs].join(':') };
  } catch (error) {
    return { kind: (error as NodeJS.ErrnoException).code === 'EACCES' ? 'not-executable' : 'missing' };
  }
}
