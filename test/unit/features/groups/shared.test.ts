import { keyOptions } from '../../../../src/features/groups/shared.js';

describe('The option running', () => {
  it.each(['1', '4', '1024'])('is a number of jobs: %s', (text) => {
    expect(keyOptions.running.read(text)).toBe(text);
  });

  it.each([null, '', '0', '1025', '1.5', '-1', 'all'])('is refused: %s', (text) => {
    expect(() => keyOptions.running.read(text)).toThrow('must be a whole number from 1 to 1024');
  });
});

describe('The option share', () => {
  it.each(['1', '100'])('is a number of turns: %s', (text) => {
    expect(keyOptions.share.read(text)).toBe(text);
  });

  it.each([null, '0', '101', '0.5'])('is refused: %s', (text) => {
    expect(() => keyOptions.share.read(text)).toThrow('must be a whole number from 1 to 100');
  });
});
