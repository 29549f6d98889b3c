import { BackgroundJob } from '../../../../src/primary/background/background-job.js';
import type { Ticket } from '../../../../src/primary/jobs/ticket.js';
import { cancelled } from '../../../../src/shared/errors.js';
import type { JobEvent } from '../../../../src/shared/job.js';
import { plainForm } from '../../../support/background-harness.js';
import { FakeClock } from '../../../support/fake-clock.js';
import { all } from '../../../support/job-harness.js';
import { jobDone, jobRequest } from '../../../support/job-records.js';
import { settled } from '../../../support/settled.js';

function open() {
  const clock = new FakeClock();
  const place = { position: 3, reason: 'slot' };
  const accepted = { id: 'j', form: plainForm, request: jobRequest({ text: 'Hü' }), createdAt: clock.now() };
  const job = new BackgroundJob(accepted, clock);
  job.entered(place as Ticket);
  const follow = (signal = new AbortController().signal) => all(job.events(signal));
  return { clock, place, job, follow };
}

const start: JobEvent = { type: 'job-start', queueMs: 0 };

function delta(text: string): JobEvent {
  return { type: 'text-delta', text };
}

describe('A background job', () => {
  it('is queued, running, and then no other than it was: its end is told by who keeps it', async () => {
    const { clock, place, job } = open();
    const createdAt = clock.now();
    expect(job.view).toMatchObject({ id: 'j', status: 'queued', position: 3, createdAt, startedAt: null });
    place.position = 0; // it has left the waiting room, and no slot yet
    expect([job.view.status, job.view.position, job.isWaiting]).toEqual(['queued', 1, true]);
    await clock.advance(700);
    job.take(start);
    expect(job.view).toMatchObject({ status: 'running', position: null, startedAt: createdAt + 700 });
    expect([job.hasStarted, job.isWaiting, job.queueMs, job.bytes]).toEqual([true, false, 700, 3]);
    job.ended(jobDone());
    expect([job.view.status, job.hasStarted]).toEqual(['running', true]);
  });

  it('rests for a while after it could not start', async () => {
    const { clock, job } = open();
    expect(job.isResting).toBe(false);
    job.putBack(1000);
    expect([job.isResting, job.view.status]).toEqual([true, 'queued']);
    await clock.advance(1000);
    expect(job.isResting).toBe(false);
  });

  it('aborts its signal with why it was cancelled', () => {
    const { job } = open();
    const reason = cancelled('enough');
    job.cancel(reason);
    expect([job.signal.aborted, job.signal.reason]).toEqual([true, reason]);
  });
});

describe('The events of a background job', () => {
  it('are all of them, for who comes at the beginning, in the middle, and after the end', async () => {
    const { clock, place, job, follow } = open();
    const early = follow();
    await clock.advance(2500);
    place.position = 1;
    await clock.advance(500);
    job.take(start);
    job.take(delta('Hel'));
    await settled();
    const middle = follow();
    await settled();
    job.take(delta('lo'));
    await settled();
    job.ended(jobDone({ text: 'Hallo' }));
    const begun: JobEvent = { type: 'job-start', queueMs: 3000 };
    const end = jobDone({ text: 'Hallo' });
    const queued = [3, 1].map((position): JobEvent => ({ type: 'job-queued', position, reason: 'slot' }));
    expect(await early).toEqual([...queued, begun, delta('Hel'), delta('lo'), end]);
    expect(await middle).toEqual([begun, delta('Hel'), delta('lo'), end]);
    expect(await follow()).toEqual([begun, delta('Hello'), end]);
  });

  it('come at the pace of each reader, who gets joined what it has not taken', async () => {
    const { job } = open();
    const reader = job.events(new AbortController().signal);
    job.take(start);
    await reader.next();
    for (const text of ['a', 'b', 'c']) job.take(delta(text));
    expect((await reader.next()).value).toEqual(delta('abc'));
  });

  it('end with the job where it never started, and stop with the signal of the reader alone', async () => {
    const { clock, job, follow } = open();
    const controller = new AbortController();
    const leaver = follow(controller.signal);
    const stayer = follow();
    await settled();
    controller.abort(new Error('gone'));
    await expect(leaver).rejects.toThrow('gone');
    job.ended({ ...jobDone(), outcome: 'cancelled', failure: { code: 'cancelled', message: 'enough' } });
    expect((await stayer).map(({ type }) => type)).toEqual(['job-queued', 'job-end']);
    expect(clock.pending).toBe(0);
  });

  it('tells its readers no more once another host may have it', async () => {
    const { job, follow } = open();
    const told = follow();
    await settled();
    job.giveUp();
    expect(await told).toEqual([{ type: 'job-queued', position: 3, reason: 'slot' }]);
  });
});
