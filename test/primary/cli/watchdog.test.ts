import { Watchdog } from '../../../src/primary/cli/watchdog.js';
import type { RelayError } from '../../../src/shared/errors.js';
import { FakeClock } from '../../support/fake-clock.js';

function watch(firstOutputMs: number, stallMs: number) {
  const clock = new FakeClock();
  const barks: RelayError[] = [];
  const watchdog = new Watchdog({ firstOutputMs, stallMs }, clock, (reason) => barks.push(reason));
  return { clock, watchdog, messages: () => barks.map(({ code, message }) => `${code}: ${message}`) };
}

const first = 'timeout: the model was silent for 100 ms before its first output';
const stalled = 'timeout: the model CLI was silent for 30 ms between two outputs';

describe('a watchdog', () => {
  it('barks once when the first output does not come, and says so', async () => {
    const { clock, messages } = watch(100, 30);
    await clock.advance(99);
    expect(messages()).toEqual([]);
    await clock.advance(1000);
    expect(messages()).toEqual([first]);
  });

  it('barks when the output stalls, counted from the last one', async () => {
    const { clock, watchdog, messages } = watch(100, 30);
    for (let count = 0; count < 5; count++) {
      await clock.advance(29);
      watchdog.heard();
    }
    expect(messages()).toEqual([]);
    await clock.advance(30);
    expect(messages()).toEqual([stalled]);
  });

  it('minds no silence while it rests, and starts afresh after it', async () => {
    const { clock, watchdog, messages } = watch(100, 30);
    watchdog.heard();
    await clock.advance(29);
    watchdog.rest();
    await clock.advance(10_000);
    watchdog.heard();
    await clock.advance(29);
    expect(messages()).toEqual([]);
    await clock.advance(1);
    expect(messages()).toEqual([stalled]);
  });

  it('takes 0 for no limit, each for itself', async () => {
    const onlyStall = watch(0, 30);
    await onlyStall.clock.advance(10_000);
    expect(onlyStall.clock.pending).toBe(0);
    onlyStall.watchdog.heard();
    await onlyStall.clock.advance(30);
    expect(onlyStall.messages()).toEqual([stalled]);

    const onlyFirst = watch(100, 0);
    onlyFirst.watchdog.heard();
    await onlyFirst.clock.advance(10_000);
    expect(onlyFirst.messages()).toEqual([]);
  });

  it('leaves no timer behind', () => {
    const { clock, watchdog } = watch(100, 30);
    watchdog.heard();
    watchdog[Symbol.dispose]();
    expect(clock.pending).toBe(0);
  });
});
