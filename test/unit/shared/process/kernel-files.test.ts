import { readFile } from 'node:fs/promises';
import { readNow, readVirtualFile } from '../../../../src/shared/process/proc.js';
import { Children } from '../../../support/children.js';

describe('A file that the kernel makes up', () => {
  it.each([0, 4095, 4096, 4097, 8192, 100_000])('is read whole, also with %d bytes', async (bytes) => {
    await using children = new Children();
    const env: Record<string, string> = bytes === 0 ? {} : { A: 'x'.repeat(bytes - 'A=\0'.length) };
    const pid = await children.start(env, '/bin/sleep', '60');
    const content = await readVirtualFile(`/proc/${pid}/environ`);
    expect(content.length).toBe(bytes);
    expect(content.equals(await readFile(`/proc/${pid}/environ`))).toBe(true);
  });

  it('is reported where it is missing', async () => {
    await expect(readVirtualFile('/proc/nothing')).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('is read in one piece at once where it is small, and is empty where it is missing', () => {
    expect(readNow('/proc/self/stat')).toMatch(new RegExp(`^${process.pid} \\(`));
    expect(readNow('/proc/nothing')).toBe('');
  });

  it('is read beyond the page that the kernel gives of a list at once', () => {
    expect(readNow('/proc/self/smaps')).toHaveLength(16 * 1024);
  });
});
