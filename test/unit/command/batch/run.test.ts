import { CommandError } from '../../../../src/command/base/errors.js';
import type { Asker } from '../../../../src/command/batch/asker.js';
import type { BadLine, Prompt } from '../../../../src/command/batch/prompts.js';
import { BatchRun, type RunOptions } from '../../../../src/command/batch/run.js';
import type { PromptEnd } from '../../../../src/command/batch/streams.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { settled } from '../../../support/basics/settled.js';

const never = new AbortController().signal;
const failure: PromptEnd = { error: { code: 'timeout', message: 'x' } };

function answer(response: string): PromptEnd {
  return { response, model: null, usage: null, request_id: 'r' };
}

async function* numbered(count: number): AsyncGenerator<Prompt | BadLine> {
  for (let id = 0; id < count; id++) yield { id, line: id + 1, path: '/ask', body: {}, imageFiles: [] };
}

/** Asker that answers prompts on demand. */
class Desk implements Pick<Asker, 'ask' | 'rerun' | 'heldBecause'> {
  readonly rerun = 0;
  readonly heldBecause = null;
  readonly open = new Map<string | number, ReturnType<typeof withResolvers<PromptEnd>>>();
  readonly written: unknown[] = [];
  mostOpen = 0;

  ask({ id }: Prompt, signal: AbortSignal): Promise<PromptEnd> {
    const asked = withResolvers<PromptEnd>();
    this.open.set(id, asked);
    this.mostOpen = Math.max(this.mostOpen, this.open.size);
    signal.addEventListener('abort', () => asked.reject(signal.reason));
    return asked.promise.finally(() => this.open.delete(id));
  }

  write(record: object): Promise<void> {
    this.written.push((record as { id: unknown }).id);
    return Promise.resolve();
  }

  async answer(id: number, ending = answer('x')): Promise<void> {
    this.open.get(id)?.resolve(ending);
    await settled();
  }

  async answerAll(): Promise<void> {
    for (await settled(); this.open.size > 0; await settled()) {
      for (const asked of this.open.values()) asked.resolve(answer('x'));
    }
  }
}

function runOf(desk: Desk, options: Partial<RunOptions> = {}): BatchRun {
  const defaults = { concurrency: 3, isOrdered: false, maxFailures: Number.POSITIVE_INFINITY };
  return new BatchRun(desk, desk, { ...defaults, ...options });
}

describe('A run of a batch', () => {
  it('sends as many prompts at once as allowed, and each once', async () => {
    const desk = new Desk();
    const run = runOf(desk);
    const whole = run.run(numbered(10), never, never);
    await desk.answerAll();
    await whole;
    expect(desk.mostOpen).toBe(3);
    expect(desk.written.toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(run.tally).toMatchObject({ answered: 10, failed: 0 });
  });

  it('writes answers as they arrive, or in the order of their lines', async () => {
    for (const isOrdered of [false, true]) {
      const desk = new Desk();
      const whole = runOf(desk, { isOrdered }).run(numbered(3), never, never);
      await settled();
      await desk.answer(2);
      await desk.answer(1);
      expect(desk.written).toEqual(isOrdered ? [] : [2, 1]);
      await desk.answer(0);
      await whole;
      expect(desk.written).toEqual(isOrdered ? [0, 1, 2] : [2, 1, 0]);
    }
  });

  it('buffers no more answers than its limit while one is late', async () => {
    const desk = new Desk();
    const whole = runOf(desk, { isOrdered: true }).run(numbered(1000), never, never);
    await settled();
    for (let id = 1; desk.open.size > 1; id++) await desk.answer(id);
    expect(desk.open.size).toBe(1);
    await desk.answer(0);
    expect(desk.written.length).toBe(3 * 32);
    await desk.answerAll();
    await whole;
    expect(desk.written).toEqual(Array.from({ length: 1000 }, (_, id) => id));
  });

  it('starts no further prompt once it is stopped, and waits for the sent ones', async () => {
    const desk = new Desk();
    const stopping = new AbortController();
    const whole = runOf(desk).run(numbered(10), stopping.signal, never);
    await settled();
    stopping.abort();
    await desk.answerAll();
    await whole;
    expect(desk.written).toEqual([0, 1, 2]);
  });

  it('ends at once if it is aborted, and writes no pending answer', async () => {
    const desk = new Desk();
    const cutting = new AbortController();
    const whole = runOf(desk).run(numbered(10), never, cutting.signal);
    await settled();
    cutting.abort(new Error('cut'));
    await expect(whole).rejects.toThrow('cut');
    expect(desk.written).toEqual([]);
  });

  it('starts no further prompt once the maximum number has failed', async () => {
    const desk = new Desk();
    const run = runOf(desk, { maxFailures: 2 });
    const whole = run.run(numbered(10), never, never);
    await settled();
    await desk.answer(0, failure);
    await desk.answer(1, failure);
    await desk.answerAll();
    await whole;
    expect(run.hasGivenUp).toBe(true);
    expect(run.tally).toMatchObject({ failed: 2, answered: 2 });
  });

  it('ends completely if one prompt has a fatal error', async () => {
    const desk = new Desk();
    const whole = runOf(desk, { isOrdered: true }).run(numbered(1000), never, never);
    await settled();
    desk.open.get(0)?.reject(new CommandError(77, 'the key is wrong'));
    await expect(whole).rejects.toThrow('the key is wrong');
    expect(desk.open.size).toBe(0);
  });
});
