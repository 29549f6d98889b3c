import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { TokenCounter } from '../../../../src/primary/threads/token-counter.js';
import { count } from '../../../../src/primary/threads/token-thread.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { FakeClock } from '../../../support/fake-clock.js';
import { temporaryFolder } from '../../../support/folder.js';
import { until } from '../../../support/until.js';

async function withThread(source: string, act: (path: string) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'thread.js');
  await writeFile(path, source);
  await act(path);
}

describe('the token counter', () => {
  it('counts as the tokenizer does, over all texts', async () => {
    const counter = new TokenCounter(systemClock, fail);
    expect(await counter.count(['Hello, world!', '', 'Hello, world!'])).toBe(8);
    expect(await counter.count([])).toBe(0);
    await counter.close();
  });

  it('estimates from the bytes, at once and every time, when its thread can not start', async () => {
    await withThread("throw new Error('its file is gone')", async (path) => {
      const errors: unknown[] = [];
      const counter = new TokenCounter(new FakeClock(), (error) => errors.push(error), path);
      expect(await Promise.all([counter.count(['12345678']), counter.count(['äöü'])])).toEqual([2, 2]);
      expect(await counter.count(['1'])).toBe(1);
      expect(errors).toContainEqual(expect.objectContaining({ message: 'its file is gone' }));
      await counter.close();
    });
  });

  it('estimates when the thread takes longer than anybody waits, and counts again after that', async () => {
    const hangsOnce = "exports.count = ([text]) => { if (text === 'hang') for (;;); return 42; }";
    await withThread(hangsOnce, async (path) => {
      const clock = new FakeClock();
      const counter = new TokenCounter(clock, fail, path);
      const count = counter.count(['hang']);
      await clock.advance(3000);
      expect(await count).toBe(1);
      await until(async () => (await counter.count(['again'])) === 42, 'the next thread to count');
      await counter.close();
    });
  });
});

describe('a text without a break', () => {
  // Uncut, each of these would keep the tokenizer busy for minutes.
  it.each([' ', '\n', '\u00a0', '\u3000', 'a', '.', '漢', '👩'])('is counted like any other: %j', (character) => {
    const [once, tenTimes] = [1e5, 1e6].map((length) => count([`a${character.repeat(length)}b`])) as [number, number];
    expect(once).toBeGreaterThan(100);
    expect(tenTimes / once).toBeCloseTo(10, 0);
  });

  it('is counted whole', () => {
    const words = 'The quick brown fox. '.repeat(500);
    expect(count([words])).toBe(countTokens(words));
    expect(count(['x'.repeat(128), ' '.repeat(128), ''])).toBe(
      countTokens('x'.repeat(128)) + countTokens(' '.repeat(128)),
    );
  });
});

function fail(error: unknown): never {
  throw error;
}
