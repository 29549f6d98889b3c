import { placesOfFault, startFault } from '../../../../src/primary/lifecycle/start-environment.js';
import { ConfigFault } from '../../../../src/shared/config/config.js';

describe('A fault at the start', () => {
  it('is printed with every configuration fault, and the near misses beside them', () => {
    const { text, records } = startFault(new ConfigFault(['A: is wrong'], ['B is not a variable']));
    expect(text).toBe("prompt-relay can't start:\n  A: is wrong\n  Warning: B is not a variable\n");
    expect(records).toEqual([
      ['config_invalid', { error: 'A: is wrong' }],
      ['config_warning', { warning: 'B is not a variable' }],
    ]);
  });

  it('contains no terminal control sequences', () => {
    expect(startFault(new ConfigFault(['\u001b[2J'])).text).not.toContain('\u001b');
  });

  it('is printed once if both streams have the same destination, else in each of them', () => {
    expect(placesOfFault(true, true)).toEqual({ inText: true, inLog: false });
    expect(placesOfFault(true, false)).toEqual({ inText: false, inLog: true });
    expect(placesOfFault(false, false)).toEqual({ inText: true, inLog: true });
  });
});
