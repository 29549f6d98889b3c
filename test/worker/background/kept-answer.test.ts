import type { JobEvent } from '../../../src/shared/job.js';
import { KeptAnswer } from '../../../src/worker/background/kept-answer.js';
import { jobDone, jobFailed } from '../../support/job-records.js';

async function* events(...list: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* list;
}

function delta(text: string): JobEvent {
  return { type: 'text-delta', text };
}

const noSpill = { file: async () => null };

describe('What is held of the answer of a background job', () => {
  it('is its text and its end, of which each event was told first', async () => {
    const told: JobEvent[] = [];
    const list = [delta('Hel'), delta('lo'), jobDone()];
    await using answer = new KeptAnswer(noSpill, false);
    const end = await answer.collect(events(...list), async (event) => void told.push(event));
    expect([end, told]).toEqual([list[2], list]);
    expect(answer.written(jobDone(), ({ text, value }) => JSON.stringify({ text, value })).short).toBe(
      '{"text":"Hello"}',
    );
  });

  it('is the value of structured output, and none where there is no text', async () => {
    const readValue = async (...texts: readonly string[]) => {
      await using answer = new KeptAnswer(noSpill, true);
      await answer.collect(events(...texts.map(delta), jobDone()));
      return answer.written(jobDone(), ({ value }) => JSON.stringify({ value })).short;
    };
    expect(await readValue('{"a"', ':[1]}')).toBe('{"value":{"a":[1]}}');
    expect(await readValue()).toBe('{}');
  });

  it('is nothing where the job has failed, or its events break off', async () => {
    await using answer = new KeptAnswer(noSpill, false);
    expect(await answer.collect(events(delta('Hel'), jobFailed('timeout')))).toMatchObject({ outcome: 'timeout' });
    expect(await answer.collect(events(delta('Hel')))).toBeNull();
  });
});
