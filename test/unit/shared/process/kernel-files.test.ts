import { readFile } from 'node:fs/promises';
import { readNow, readVirtualFile } from '../../../../src/shared/process/proc.js';
import { Children } from '../../../support/processes/children.js';

describe('A kernel file', () => {
  it.each([0, 4095, 4096, 4097, 8192, 100_000])('is read completely, even with %d bytes', async (bytes) => {
    await using children = new Children();
    const env: Record<string, string> = bytes === 0 ? {} : { A: 'x'.repeat(bytes - 'A=\0'.length) };
    const pid = await children.start(env, '/bin/sleep', '60');
    const content = await readVirtualFile(`/proc/${pid}/environ`);
    expect(content.length).toBe(bytes);
    expect(content.equals(await readFile(`/proc/${pid}/environ`))).toBe(true);
  });

  it('causes an error if it is missing', async () => {
    await expect(readVirtualFile('/proc/nothing')).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('is read synchronously if it is small, and is empty if it is missing', () => {
    expect(readNow('/proc/self/stat')).toMatch(new RegExp(`^${process.pid} \\(`));
    expect(readNow('/proc/nothing')).toBe('');
  });

  it('is read beyond the page that the kernel returns at once', () => {
    expect(readNow('/proc/self/smaps')).toHaveLength(16 * 1024);
  });
});
