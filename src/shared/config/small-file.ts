import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

/**
 * Reads a text file of at most `maxBytes`. Rejects for a larger file, and for anything but a file, because a named pipe
 * could block forever.
 */
export async function readSmallFile(path: string, maxBytes: number): Promise<string> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stats = await file.stat();
  if (stats.isDirectory()) throw Object.assign(new Error(`${path}: it is a folder`), { code: 'EISDIR' });
  if (!stats.isFile()) throw new Error(`${path}: it is not a regular file`);
  if (stats.size > maxBytes) throw new Error(`${path}: it is larger than ${maxBytes / 1024} KB`);
  return await file.readFile('utf8');
}
