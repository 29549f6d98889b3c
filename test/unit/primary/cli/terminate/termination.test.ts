import { chooseTermination } from '../../../../../src/primary/cli/terminate/termination.js';
import { systemClock as clock } from '../../../../../src/shared/clock.js';
import { LogBook } from '../../../../support/basics/log-book.js';
import { temporaryInstance } from '../../../../support/processes/trees.js';

it.each([
  [
    'a warning if nothing ties a program to the life of the service',
    null,
    [expect.stringMatching(/^no setpriv on PATH/)],
  ],
  ['no warning with setpriv', '/usr/bin/setpriv', []],
])('The way to end processes is by process group in the core, with %s', async (_, setpriv, expected) => {
  await using instance = await temporaryInstance(); // the end of the containments sweeps its processes
  const host = { instance, unitCgroups: null, isService: false, clock, log: new LogBook() };
  const { containments, warnings, fault } = await chooseTermination({ setpriv, hasPs: false }, host, null);
  await containments.close();
  expect([containments.means, warnings, fault]).toEqual(['process-group', expected, null]);
});
