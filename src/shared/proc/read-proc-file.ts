import { close, open, read } from 'node:fs';

/** Holds nearly every file of /proc, and comes from node's pool of small buffers. */
const firstBytes = 4096;

/**
 * Reads a file of /proc. They have no size, and an incomplete read is the last one; `readFile` would take a stat and
 * two reads into 64 KiB each. Not awaited: how the closing of what was only read went is nobody's business.
 */
export async function readProcFile(path: string): Promise<Buffer> {
  const fd = await openForReading(path);
  try {
    return await readOn(fd, Buffer.allocUnsafe(firstBytes), 0);
  } finally {
    close(fd, () => {});
  }
}

async function readOn(fd: number, buffer: Buffer, filled: number): Promise<Buffer> {
  const bytes = await readInto(fd, buffer.subarray(filled));
  if (filled + bytes < buffer.length) return buffer.subarray(0, filled + bytes);
  return readOn(fd, Buffer.concat([buffer, Buffer.allocUnsafe(buffer.length)]), buffer.length);
}

function openForReading(path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    open(path, (error, fd) => (error === null ? resolve(fd) : reject(error)));
  });
}

function readInto(fd: number, buffer: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, buffer.length, null, (error, bytes) => (error === null ? resolve(bytes) : reject(error)));
  });
}
