import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { TokenCounter } from '../../../../src/primary/threads/token-counter.js';
import { count } from '../../../../src/primary/threads/token-thread.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { sampleForTokens } from '../../../../src/shared/text/token-sample.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { until } from '../../../support/basics/until.js';

async function withThread(source: string, act: (path: string) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'thread.js');
  await writeFile(path, source);
  await act(path);
}

describe('The token counter', () => {
  it('counts in the same way as the tokenizer, over all texts', async () => {
    const counter = new TokenCounter(systemClock, fail);
    expect(await counter.countTokens(['Hello, world!', '', 'Hello, world!'], 'key ada')).toBe(8);
    expect(await counter.countTokens([], 'key ada')).toBe(0);
    await counter.closeThread();
  });

  it('counts pieces of a long text, and estimates the rest from them', async () => {
    const seen = "exports.count = (texts) => texts.join('').length / 2";
    await withThread(seen, async (path) => {
      const counter = new TokenCounter(systemClock, fail, path);
      expect(await counter.countTokens(['x'.repeat(100_000)], 'key ada')).toBe(50_000);
      const long = ['x'.repeat(50_000), 'y'.repeat(950_000), 'z'];
      expect(sampleForTokens(long).texts.join('').length).toBeLessThan(100_001);
      expect(await counter.countTokens(long, 'key ada')).toBe(500_001);
      await counter.closeThread();
    });
  });

  it('gives turns priority over counts that API clients request', async () => {
    const slow = `exports.count = ([text]) => {
      const end = Date.now() + (text === undefined ? 0 : 50);
      while (Date.now() < end);
      return 42;
    }`;
    await withThread(slow, async (path) => {
      const counter = new TokenCounter(systemClock, fail, path);
      const order: string[] = [];
      const count = (name: string, client: ClientText) =>
        counter.countTokens([name], client).then(() => order.push(name));
      const flood = ['a', 'b', 'c'].map((name) => count(name, 'key greedy/sub'));
      const other = count('other', 'key other');
      const turn = counter.countUrgently(['turn'], 'key ada').then(() => order.push('turn'));
      await Promise.all([...flood, other, turn]);
      expect(order).toEqual(['a', 'turn', 'b', 'other', 'c']);
      await counter.closeThread();
    });
  });

  it('estimates from the bytes, immediately and every time, if its thread cannot start', async () => {
    await withThread("throw new Error('its file is gone')", async (path) => {
      const errors: unknown[] = [];
      const counter = new TokenCounter(new FakeClock(), (error) => errors.push(error), path);
      expect(
        await Promise.all([counter.countTokens(['12345678'], 'key ada'), counter.countTokens(['äöü'], 'key ada')]),
      ).toEqual([2, 2]);
      expect(await counter.countTokens(['1'], 'key ada')).toBe(1);
      expect(errors).toContainEqual(expect.objectContaining({ message: 'its file is gone' }));
      await counter.closeThread();
    });
  });

  it('estimates if the thread takes too long, and counts again after that', async () => {
    const hangsOnce = "exports.count = ([text]) => { if (text === 'hang') for (;;); return 42; }";
    await withThread(hangsOnce, async (path) => {
      const clock = new FakeClock();
      const counter = new TokenCounter(clock, fail, path);
      const count = counter.countTokens(['hang'], 'key ada');
      await clock.advance(3000);
      expect(await count).toBe(1);
      await until(async () => (await counter.countTokens(['again'], 'key ada')) === 42, 'the next thread to count');
      await counter.closeThread();
    });
  });
});

describe('a text without a break', () => {
  // Uncut, each of these texts would occupy the tokenizer for minutes.
  it.each([' ', '\n', '\u00a0', '\u3000', 'a', '.', '漢', '👩'])('is counted like any other: %j', (character) => {
    const [once, tenTimes] = [1e5, 1e6].map((length) => count([`a${character.repeat(length)}b`])) as [number, number];
    expect(once).toBeGreaterThan(100);
    expect(tenTimes / once).toBeCloseTo(10, 0);
  });

  it('is counted as a whole', () => {
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
