import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LimitedThread } from '../../../src/primary/threads/limited-thread.js';
import { FakeClock } from '../../support/fake-clock.js';
import { temporaryFolder } from '../../support/folder.js';
import { until } from '../../support/until.js';

async function withThread(
  source: string,
  act: (thread: LimitedThread<string, string>, clock: FakeClock, errors: unknown[]) => Promise<void>,
): Promise<void> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'thread.js');
  await writeFile(file, source);
  const clock = new FakeClock();
  const errors: unknown[] = [];
  const settings = { file, name: 'answer', limitMs: 2000, idleMs: 1000 };
  const thread = new LimitedThread<string, string>(settings, clock, (error) => errors.push(error));
  await act(thread, clock, errors);
  await thread.close();
}

const works = `exports.answer = (task) => {
  if (task === 'hang') for (;;);
  if (task === 'throw') throw new Error('no');
  return task.toUpperCase();
};`;

describe('a thread with a limit', () => {
  it('answers one task after the other, and leaves no timer', async () => {
    await withThread(works, async (thread, clock) => {
      expect(await Promise.all(['a', 'b', 'c'].map((task) => thread.run(task, '')))).toEqual(['A', 'B', 'C']);
      expect(clock.pending).toBe(0);
    });
  });

  it('rejects where the task fails, and goes on', async () => {
    await withThread(works, async (thread, _clock, errors) => {
      await expect(thread.run('throw', '')).rejects.toThrow('no');
      expect(await thread.run('a', '')).toBe('A');
      expect(errors).toEqual([]);
    });
  });

  it('ends with a task that takes longer than its limit, and the next one gets another', async () => {
    await withThread(works, async (thread, clock) => {
      const hanging = expect(thread.run('hang', '')).rejects.toThrow();
      await clock.advance(2000);
      await hanging;
      await until(async () => (await thread.run('a', '')) === 'A', 'the next thread');
    });
  });

  it('rejects at once where its file can not be read, and tells of that', async () => {
    await withThread("throw new Error('its file is gone')", async (thread, _clock, errors) => {
      await expect(thread.run('a', '')).rejects.toThrow();
      expect(errors).toContainEqual(expect.objectContaining({ message: 'its file is gone' }));
    });
  });
});
