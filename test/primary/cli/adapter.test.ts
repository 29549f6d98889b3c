import { crashed } from '../../../src/primary/cli/adapter.js';

describe('a program that exits in the middle of a turn', () => {
  it.each([
    [{ code: 3, signal: null, stderr: '' }, 'the model CLI exited with code 3'],
    [{ code: null, signal: 'SIGSEGV', stderr: '' }, 'the model CLI was ended by SIGSEGV'],
    [
      { code: 1, signal: null, stderr: 'warming up\nthe disk is full\n\n' },
      'the model CLI exited with code 1: the disk is full',
    ],
    [{ code: 1, signal: null, stderr: 'x'.repeat(1000) }, `the model CLI exited with code 1: ${'x'.repeat(300)}`],
  ])('has crashed, with the last line of its stderr: %#', (exit, message) => {
    expect(crashed(exit)).toEqual({ type: 'turn-failed', reason: 'crashed', message });
  });
});
