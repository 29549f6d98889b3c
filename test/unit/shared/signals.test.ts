import { Signals } from '../../../src/shared/signals.js';

interface TestSignals {
  'count-letters': (word: string) => number;
  stopped: () => void;
}

describe('The signals between parts', () => {
  it('pass their arguments to the handler, and its result back', () => {
    const signals = new Signals<TestSignals>();
    signals.on('count-letters', (word) => word.length);
    expect(signals.send('count-letters', 'slot')).toBe(4);
  });

  it('throw if there is no handler yet', () => {
    const signals = new Signals<TestSignals>();
    expect(() => signals.send('stopped')).toThrow('the signal stopped has no handler');
  });

  it('have one handler each', () => {
    const signals = new Signals<TestSignals>();
    signals.on('stopped', () => {});
    expect(() => signals.on('stopped', () => {})).toThrow('the signal stopped has a handler already');
  });
});
