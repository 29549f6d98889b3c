import type { PromptEnd } from '../../../../src/command/batch/ends.js';
import type { BadLine, Prompt } from '../../../../src/command/batch/prompts.js';
import { BatchRun, type RunOptions, type Sender, type Sending } from '../../../../src/command/batch/run.js';
import { settled } from '../../../support/basics/settled.js';

const never = new AbortController().signal;
const answer: PromptEnd = { response: 'x', model: null, usage: null, request_id: 'r' };
const failure: PromptEnd = { error: { code: 'timeout', message: 'x' } };

async function* numbered(count: number): AsyncGenerator<Prompt | BadLine> {
  for (let id = 0; id < count; id++) yield { id, line: id + 1, fault: '' };
}

/** Runs a batch with a sender that does what the test says. */
async function runWith(send: (sending: Sending) => Promise<void>, options: Partial<RunOptions> = {}) {
  const written: unknown[] = [];
  const sender: Sender = { ready: 0, heldBecause: null, sendPrompts: send };
  const sink = { writeRecord: async (record: object) => void written.push((record as { id: unknown }).id) };
  const run = new BatchRun(sender, sink, { isOrdered: false, maxFailures: Number.POSITIVE_INFINITY, ...options });
  const whole = run.runPrompts(numbered(10), never, never);
  await whole.catch(() => {});
  return { run, written, whole };
}

/** Reads prompts, and ends those at these indices in this order. */
function ending(count: number, order: readonly number[], end = answer) {
  return async ({ prompts, place }: Sending) => {
    const read: (Prompt | BadLine)[] = [];
    while (read.length < count) read.push((await prompts.next()).value);
    for (const index of order) await place(read[index] as Prompt, end);
  };
}

describe('A run of a batch', () => {
  it.each([
    [false, [2, 1, 0]],
    [true, [0, 1, 2]],
  ])('writes answers as they arrive, or in the order of their lines: %s', async (isOrdered, expected) => {
    const { run, written } = await runWith(ending(3, [2, 1, 0]), { isOrdered });
    expect(written).toEqual(expected);
    expect(run.tally).toMatchObject({ answered: 3, failed: 0 });
  });

  it('writes at its end the answers that wait for an earlier one', async () => {
    const { written } = await runWith(ending(5, [4, 2, 0]), { isOrdered: true });
    expect(written).toEqual([0, 2, 4]);
  });

  it('stops once the maximum number has failed', async () => {
    const send = async (sending: Sending) => {
      await ending(2, [0, 1], failure)(sending);
      await settled();
      expect(sending.stopping.aborted).toBe(true);
    };
    const { run, whole } = await runWith(send, { maxFailures: 2 });
    await whole;
    expect(run.hasGivenUp).toBe(true);
    expect(run.tally).toMatchObject({ failed: 2, answered: 0 });
  });

  it('fails with the error of its sender', async () => {
    const { whole } = await runWith(() => Promise.reject(new Error('the key is wrong')));
    await expect(whole).rejects.toThrow('the key is wrong');
  });
});
