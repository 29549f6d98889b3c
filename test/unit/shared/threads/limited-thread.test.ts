import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LimitedThread, TooManyTasks } from '../../../../src/shared/threads/limited-thread.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { until } from '../../../support/basics/until.js';

async function withThread(
  source: string,
  act: (thread: LimitedThread<string, string>, clock: FakeClock, errors: unknown[]) => Promise<void>,
  patienceMs: number | null = null,
): Promise<void> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'thread.js');
  await writeFile(file, source);
  const clock = new FakeClock();
  const errors: unknown[] = [];
  const settings = { file, name: 'answer', firstTask: '', limitMs: 2000, patienceMs, idleMs: 60_000 };
  const thread = new LimitedThread<string, string>(settings, clock, (error) => errors.push(error));
  await act(thread, clock, errors);
  await thread.closeThread();
}

const works = `exports.answer = (task) => {
  if (task === 'hang') for (;;);
  if (task === 'throw') throw new Error('no');
  return task.toUpperCase();
};`;

describe('A thread with a limit', () => {
  it('runs one task after the other, and leaves no timer', async () => {
    await withThread(works, async (thread, clock) => {
      expect(await Promise.all(['a', 'b', 'c'].map((task) => thread.runTask(task)))).toEqual(['A', 'B', 'C']);
      expect(clock.pending).toBe(0);
    });
  });

  it('rejects if the task fails, and continues', async () => {
    await withThread(works, async (thread, _clock, errors) => {
      await expect(thread.runTask('throw')).rejects.toThrow('no');
      expect(await thread.runTask('a')).toBe('A');
      expect(errors).toEqual([]);
    });
  });

  it('ends with a task that exceeds its limit, and the next one gets a new thread', async () => {
    await withThread(works, async (thread, clock) => {
      await thread.runTask('a'); // the limit of a task starts with the task, in a running thread
      const hanging = expect(thread.runTask('hang')).rejects.toThrow();
      const next = thread.runTask('b');
      await until(() => clock.pending > 0, 'the limit of the task');
      await clock.advance(2000);
      await hanging;
      expect(await next).toBe('B');
    });
  });

  it('serves the lines in turn, so that no client waits for all tasks of another', async () => {
    await withThread(works, async (thread) => {
      const ended: string[] = [];
      const run = (task: string, line: string) => thread.runTask(task, { line }).then((answer) => ended.push(answer));
      const all = ['a', 'b', 'c', 'd'].map((task) => run(task, 'key greedy'));
      await Promise.all([...all, run('x', 'key other')]);
      expect(ended.indexOf('X')).toBeLessThanOrEqual(2);
    });
  });

  it('gives priority to urgent tasks, and refuses none of them', async () => {
    await withThread(works, async (thread) => {
      const ended: string[] = [];
      const flood = Array.from({ length: 300 }, () =>
        thread.runTask('a', { line: 'key greedy' }).then((a) => ended.push(a)),
      );
      const settled = Promise.allSettled(flood);
      const urgent = ['b', 'c'].map((task) => thread.runTask(task, { line: 'key greedy', isUrgent: true }));
      await Promise.all(urgent);
      expect(ended.length).toBeLessThanOrEqual(1);
      await settled;
    });
  });

  it('refuses surplus tasks of one line, and accepts those of others', async () => {
    await withThread(works, async (thread) => {
      const results = await Promise.allSettled([
        ...Array.from({ length: 300 }, () => thread.runTask('a', { line: 'key greedy' })),
        thread.runTask('x', { line: 'key other' }),
      ]);
      const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
      expect(reasons).toHaveLength(300 - 251); // one runs, 250 wait
      expect(reasons.every((reason) => reason instanceof TooManyTasks)).toBe(true);
      expect(results.at(-1)).toEqual({ status: 'fulfilled', value: 'X' });
      expect(await thread.runTask('b', { line: 'key greedy' })).toBe('B');
    });
  });

  it('limits the wait of each task, whatever the task before does', async () => {
    await withThread(
      works,
      async (thread, clock) => {
        await thread.runTask('a');
        const [hanging, waiting] = ['hang', 'b'].map((task) => expect(thread.runTask(task)).rejects.toThrow());
        await clock.advance(500);
        await Promise.all([hanging, waiting]);
        expect(await thread.runTask('c')).toBe('C');
      },
      500,
    );
  });

  it('rejects immediately if its file cannot be read, and reports that', async () => {
    await withThread("throw new Error('its file is gone')", async (thread, _clock, errors) => {
      await expect(thread.runTask('a')).rejects.toThrow();
      expect(errors).toContainEqual(expect.objectContaining({ message: 'its file is gone' }));
    });
  });
});
