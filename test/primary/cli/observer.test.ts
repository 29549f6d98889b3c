import { endReasonOf } from '../../../src/primary/cli/observer.js';
import { cancelled, cliError, RelayError, shuttingDown } from '../../../src/shared/errors.js';

describe('why a process is ended', () => {
  it.each([
    [new RelayError('timeout', 'too slow'), 'timeout'],
    [cancelled('the client has gone'), 'cancelled'],
    [shuttingDown(), 'shutting_down'],
    [cliError('quota', 'nothing is left'), 'done'],
  ])('is told from the reason of the abort: %s', (reason, expected) => {
    expect(endReasonOf(reason)).toBe(expected);
  });
});
