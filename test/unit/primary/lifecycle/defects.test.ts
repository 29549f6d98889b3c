import { Defects } from '../../../../src/primary/lifecycle/defects.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';

describe('Uncaught exceptions', () => {
  it('are logged with their stack, ten a minute, and all are counted', async () => {
    const clock = new FakeClock();
    const log = new LogBook();
    const defects = new Defects(clock, log);
    for (let n = 0; n < 25; n++) defects.record(new Error(`number ${n}`));
    expect(log.events).toEqual(Array.from({ length: 10 }, () => 'internal_error'));
    expect(log.entries[0]).toMatchObject({
      level: 'error',
      fields: { error: expect.stringMatching(/^Error: number 0\n/) },
    });
    expect(defects.counts).toEqual({ primary: 25, worker: 0 });
    await clock.advance(60_000);
    defects.record(Object.create(null));
    expect(log.entries).toHaveLength(11);
  });

  it('degrade the service for ten minutes, unless they occurred in a worker', async () => {
    const clock = new FakeClock();
    const defects = new Defects(clock, new LogBook());
    defects.countWorker();
    expect([defects.lastAt, defects.counts.worker]).toEqual([null, 1]);
    defects.record('a text');
    const at = clock.now();
    await clock.advance(599_000);
    expect(defects.lastAt).toBe(at);
    await clock.advance(1000);
    expect(defects.lastAt).toBeNull();
  });
});
