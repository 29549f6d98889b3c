import { crashed } from '../../../../../src/primary/cli/contract/adapter.js';

it.each([
  [{ code: 3, signal: null, stderr: '' }, 'the model CLI exited with code 3', {}],
  [{ code: null, signal: 'SIGSEGV', stderr: '\n' }, 'the model CLI was ended by SIGSEGV', {}],
  [
    { code: 1, signal: null, stderr: 'warming up\nthe disk is full\n\n' },
    'the model CLI exited with code 1',
    { stderr: 'warming up\nthe disk is full' },
  ],
])(
  'A program that exits during a turn has crashed, and its stderr is separate from the message: %#',
  (exit, message, more) => {
    expect(crashed(exit)).toEqual({ type: 'turn-failed', reason: 'crashed', message, ...more });
  },
);
