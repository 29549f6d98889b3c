import { crashed } from '../../../../../src/primary/cli/contract/adapter.js';

describe('a program that exits in the middle of a turn', () => {
  it.each([
    [{ code: 3, signal: null, stderr: '' }, 'the model CLI exited with code 3', {}],
    [{ code: null, signal: 'SIGSEGV', stderr: '\n' }, 'the model CLI was ended by SIGSEGV', {}],
    [
      { code: 1, signal: null, stderr: 'warming up\nthe disk is full\n\n' },
      'the model CLI exited with code 1',
      { stderr: 'warming up\nthe disk is full' },
    ],
  ])('has crashed, and what it wrote to stderr stands apart from the message: %#', (exit, message, more) => {
    expect(crashed(exit)).toEqual({ type: 'turn-failed', reason: 'crashed', message, ...more });
  });
});
