import { readFile } from 'node:fs/promises';

/** Returns the inode of the socket on loopback with this local port; null if it is closed. */
export async function inodeOfClient(port: number): Promise<string | null> {
  const end = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  );
  const rows = tables
    .join('\n')
    .split('\n')
    .map((row) => row.trim().split(/\s+/));
  return rows.find(([, local]) => local?.endsWith(end))?.[9] ?? null;
}
