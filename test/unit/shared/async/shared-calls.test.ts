import { cached, coalesced, inLine, oneAtATime, withResolvers } from '../../../../src/shared/async.js';
import { delay, yieldToEventLoop } from '../../../../src/shared/clock.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';

/** Returns a function that fails at first, then counts. */
function failingOnce(): () => Promise<number> {
  let calls = 0;
  return async () => {
    if (++calls === 1) throw new Error('gone');
    return calls;
  };
}

describe('Coalesced calls', () => {
  it('share a call that starts after them, and do not wait for a running one', async () => {
    const answers: ((call: number) => void)[] = [];
    const ask = coalesced(() => new Promise<number>((resolve) => answers.push(resolve)));
    const first = ask();
    expect(answers).toHaveLength(0);
    await yieldToEventLoop();
    const crowd = [ask(), ask(), ask()];
    await yieldToEventLoop();
    expect(answers).toHaveLength(2);
    answers[1]?.(2);
    expect(await Promise.all(crowd)).toEqual([2, 2, 2]);
    answers[0]?.(1);
    expect(await first).toBe(1);
  });
});

describe('A cached answer', () => {
  it('is returned until it is too old, then requested again', async () => {
    const clock = new FakeClock();
    let calls = 0;
    const ask = cached(async () => ++calls, 100, clock);
    expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
    await clock.advance(99);
    expect(await ask()).toBe(1);
    await clock.advance(1);
    expect(await ask()).toBe(2);
  });

  it('has the age of its request, however long the answer took', async () => {
    const clock = new FakeClock();
    const answers: ((call: number) => void)[] = [];
    const ask = cached(() => new Promise<number>((resolve) => answers.push(resolve)), 100, clock);
    const first = ask();
    await clock.advance(100);
    const second = ask();
    expect(answers).toHaveLength(2);
    answers[1]?.(2);
    answers[0]?.(1);
    expect(await Promise.all([first, second])).toEqual([1, 2]);
    expect(await ask()).toBe(2);
  });

  it('is not cached if it is a failure', async () => {
    const ask = cached(failingOnce(), 100, new FakeClock());
    await expect(ask()).rejects.toThrow('gone');
    expect(await ask()).toBe(2);
  });

  it('is not lost when an older call fails later', async () => {
    const clock = new FakeClock();
    const failures: ((error: Error) => void)[] = [];
    let calls = 0;
    const ask = cached(
      () => (++calls === 1 ? new Promise<number>((_, reject) => failures.push(reject)) : Promise.resolve(calls)),
      100,
      clock,
    );
    const first = ask();
    await clock.advance(100);
    expect(await ask()).toBe(2);
    failures[0]?.(new Error('late'));
    await expect(first).rejects.toThrow('late');
    expect(await ask()).toBe(2);
  });
});

describe('Calls that run one at a time', () => {
  it('are shared by all callers while another is running, and start after a pause', async () => {
    const clock = new FakeClock();
    const answers: ((call: number) => void)[] = [];
    const ask = oneAtATime(
      () => new Promise<number>((resolve) => answers.push(resolve)),
      () => delay(clock, 100),
    );
    const first = ask();
    await settled();
    const crowd = [ask(), ask(), ask()];
    await clock.advance(1000);
    expect(answers).toHaveLength(1);
    answers[0]?.(1);
    expect(await first).toBe(1);
    await clock.advance(99);
    expect(answers).toHaveLength(1);
    await clock.advance(1);
    answers[1]?.(2);
    expect(await Promise.all(crowd)).toEqual([2, 2, 2]);
    expect(answers).toHaveLength(2);
  });
});

it.each([
  ['Coalesced calls', coalesced(failingOnce())],
  ['Calls that run one at a time', oneAtATime(failingOnce())],
])('%s share a failure, and continue afterwards', async (_, ask) => {
  const crowd = [ask(), ask()];
  expect((await Promise.allSettled(crowd)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await ask()).toBe(2);
});

it('Sequential calls run one after the other, in order, whatever the result of earlier ones', async () => {
  const call = inLine();
  const begun: number[] = [];
  const gates = Array.from({ length: 3 }, () => withResolvers<string>());
  const answers = gates.map(({ promise }, number) =>
    call(() => {
      begun.push(number);
      return promise;
    }),
  );
  await yieldToEventLoop();
  expect(begun).toEqual([0]);
  gates[0]?.reject(new Error('no'));
  await expect(answers[0]).rejects.toThrow('no');
  gates[2]?.resolve('third');
  await yieldToEventLoop();
  expect(begun).toEqual([0, 1]);
  gates[1]?.resolve('second');
  expect(await Promise.all(answers.slice(1))).toEqual(['second', 'third']);
});
