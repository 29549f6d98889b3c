import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** Of a longer list of processes, the first 2,300 at least. */
const maxNowBytes = 16 * 1024;

/**
 * The text of a small file that the kernel makes up; empty where there is no such file, and where it can't be opened, as
 * for want of descriptors. Not asynchronous: a read takes
 * five microseconds and waits for no disk, while a trip to a thread takes fifty.
 */
export function readNow(path: string): string {
  try {
    const fd = openSync(path, 'r');
    try {
      const buffer = Buffer.allocUnsafe(maxNowBytes);
      let filled = 0;
      for (let read = -1; read !== 0 && filled < maxNowBytes; filled += read) {
        read = readSync(fd, buffer, filled, maxNowBytes - filled, null);
      }
      return buffer.toString('latin1', 0, filled);
    } finally {
      closeSync(fd);
    }
  } catch {
    return '';
  }
}

/** Whether there is such a file. Takes no descriptor. */
export function isThereNow(path: string): boolean {
  return existsSync(path);
}

/** Nearly every file of /proc fits; a buffer of this size comes from Node's own pool. */
const firstBytes = 4096;

/**
 * Reads a file of one process, which the kernel makes up as it is read. Such files have no size, and a short read is the
 * last one; `readFile` would take a stat and two reads of 64 KiB each. It is no use for lists: of those each read gives a
 * page at most.
 */
export async function readVirtualFile(path: string): Promise<Buffer> {
  await using file = await open(path);
  let text = Buffer.allocUnsafe(firstBytes);
  for (let filled = 0; ; ) {
    const { bytesRead } = await file.read(text, filled);
    filled += bytesRead;
    if (filled < text.length) return text.subarray(0, filled);
    text = Buffer.concat([text, Buffer.allocUnsafe(text.length)]);
  }
}
