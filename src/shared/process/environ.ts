import { open } from 'node:fs/promises';
import { readVirtualFile } from './kernel-files.js';
import { environPlaceNow } from './proc.js';

/**
 * Erases these variables from where the kernel shows this process's environment, /proc/<pid>/environ, to every program of
 * the same user: deleting a variable leaves its text there. They must have been deleted already, so that nothing refers to
 * the text any more. Returns whether none of them can be seen now.
 */
export async function eraseFromEnviron(names: readonly string[]): Promise<boolean> {
  if (names.length === 0) return true;
  try {
    const [shown, place] = [await readVirtualFile('/proc/self/environ'), environPlaceNow()];
    const pieces = piecesOf(shown, new Set(names));
    if (pieces.length === 0) return true;
    if (place.end - place.start !== shown.length) return false;
    await using memory = await open('/proc/self/mem', 'r+');
    for (const { at, length } of pieces) await memory.write(Buffer.alloc(length), 0, length, place.start + at);
    return piecesOf(await readVirtualFile('/proc/self/environ'), new Set(names)).length === 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'; // where there is no /proc, nothing is shown
  }
}

interface Piece {
  readonly at: number;
  readonly length: number;
}

/** Where variables with these names stand in an environment as it lies in memory. */
function piecesOf(environ: Buffer, names: ReadonlySet<string>): readonly Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at < environ.length; ) {
    const end = environ.indexOf(0, at);
    const length = (end < 0 ? environ.length : end) - at;
    const [name = ''] = environ.toString('latin1', at, at + length).split('=', 1);
    if (names.has(name)) pieces.push({ at, length });
    at += length + 1;
  }
  return pieces;
}
