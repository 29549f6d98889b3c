import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, resolve } from 'node:path';

export type FoundProgram =
  | { readonly kind: 'found'; readonly path: string; readonly fingerprint: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-executable' };

/**
 * Finds a program as a shell would: by path where the name holds a slash, else along PATH. The path found is absolute,
 * because the program is executed in another folder. A file that still has the fingerprint `known` may be executed as
 * it could before: a change of its mode or owner would show.
 */
export async function findProgram(name: string, searchPath: string, known?: string): Promise<FoundProgram> {
  const candidates = name.includes('/')
    ? [resolve(name)]
    : searchPath.split(delimiter).map((folder) => resolve(folder, name));
  let isThere = false;
  for (const path of candidates) {
    const found = await inspectFile(path, known);
    if (found.kind === 'found') return found;
    isThere ||= found.kind === 'not-executable';
  }
  return { kind: isThere ? 'not-executable' : 'missing' };
}

async function inspectFile(path: string, known: string | undefined): Promise<FoundProgram> {
  try {
    const file = await stat(path);
    if (!file.isFile()) return { kind: 'missing' };
    const fingerprint = [path, file.ino, file.size, file.mtimeMs, file.ctimeMs].join(':');
    if (fingerprint !== known) await access(path, constants.X_OK);
    return { kind: 'found', path, fingerprint };
  } catch (error) {
    return { kind: (error as NodeJS.ErrnoException).code === 'EACCES' ? 'not-executable' : 'missing' };
  }
}
