import { AcceptedPart } from '../../../../src/features/background/accepted-part.js';
import { EventLog } from '../../../../src/features/background/event-log.js';
import { cancelled } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { all } from '../../../support/jobs/job-harness.js';
import { acceptedJob } from '../../../support/stores/shared-jobs.js';

function open() {
  const log = new EventLog(new FakeClock(), () => ({ position: 1, reason: 'slot' }));
  const hooks = { isHeld: () => false, beforeStart: async () => {} };
  return new AcceptedPart(acceptedJob('j'), log, false, hooks);
}

describe('A background job', () => {
  it('aborts its signal with the reason of its cancellation', () => {
    const part = open();
    const reason = cancelled('enough');
    part.cancel(reason);
    expect([part.signal.aborted, part.signal.reason]).toEqual([true, reason]);
  });

  it('sends no more events to its readers once another host may run it', async () => {
    const part = open();
    part.lose();
    expect([part.isLost, await all(part.log.readEvents(new AbortController().signal))]).toEqual([true, []]);
  });
});
