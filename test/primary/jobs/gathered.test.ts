import { gathered } from '../../../src/primary/jobs/gathered.js';
import type { JobEvent } from '../../../src/shared/job.js';

async function* events(...texts: readonly string[]): AsyncGenerator<JobEvent> {
  yield { type: 'job-start', queueMs: 0 };
  for (const text of texts) yield { type: 'text-delta', text };
  yield { type: 'job-queued', position: 1 };
}

async function textsOf(source: AsyncIterable<JobEvent>): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of source) seen.push(event.type === 'text-delta' ? event.text : event.type);
  return seen;
}

describe('the text of an answer nobody reads along', () => {
  it('comes in one piece, before whatever follows it', async () => {
    expect(await textsOf(gathered(events('Hel', 'lo')))).toEqual(['job-start', 'Hello', 'job-queued']);
  });

  it('comes in pieces of bounded length, none of them lost', async () => {
    const texts = Array.from({ length: 100 }, (_, index) => String(index % 10).repeat(1000));
    const pieces = (await textsOf(gathered(events(...texts)))).slice(1, -1);
    expect(pieces.join('')).toBe(texts.join(''));
    expect(pieces.length).toBeLessThan(10);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(16 * 1024);
  });

  it('has no piece where nothing was said', async () => {
    expect(await textsOf(gathered(events()))).toEqual(['job-start', 'job-queued']);
  });
});
