import { BackgroundJob } from '../../../src/primary/background/background-job.js';
import { WaitingJobs } from '../../../src/primary/background/waiting-jobs.js';
import { plainForm } from '../../support/background-harness.js';
import { FakeClock } from '../../support/fake-clock.js';
import { jobRequest } from '../../support/job-records.js';

const clock = new FakeClock();

/** A job of the client that its name begins with. */
function job(id: string, text = '', client = id.charAt(0)): BackgroundJob {
  const request = jobRequest({ client, text });
  return new BackgroundJob({ id, form: plainForm, request, createdAt: 0 }, () => 1, clock);
}

function waitingOf(...jobs: readonly BackgroundJob[]): WaitingJobs {
  const waiting = new WaitingJobs();
  for (const each of jobs) waiting.add(each);
  return waiting;
}

function takeAll(waiting: WaitingJobs, mayStart: (each: BackgroundJob) => boolean = () => true): string[] {
  const ids: string[] = [];
  for (let next = waiting.takeNext(mayStart); next !== null; next = waiting.takeNext(mayStart)) {
    ids.push(next.accepted.id);
  }
  return ids;
}

const ids = ['a1', 'a2', 'a3', 'b1', 'c1', 'c2'];

describe('The background jobs that wait', () => {
  it('are taken in the order of their clients’ turns, the oldest of each first', () => {
    const waiting = waitingOf(...ids.map((id) => job(id)));
    expect(takeAll(waiting)).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
    expect([waiting.count, waiting.bytes, waiting.of('a')]).toEqual([0, 0, { jobs: 0, bytes: 0 }]);
  });

  it('have the position at which they are taken, if nobody else comes', () => {
    const jobs = ids.map((id) => job(id));
    const waiting = waitingOf(...jobs);
    const first = waiting.takeNext(() => true);
    expect(first?.accepted.id).toBe('a1');
    const positions = new Map(jobs.map((each) => [each.accepted.id, waiting.positionOf(each)]));
    expect(positions.get('a1')).toBe(0);
    const taken = takeAll(waiting);
    expect(taken.map((id) => positions.get(id))).toEqual(taken.map((_, index) => index + 1));
  });

  it('are taken from keys in turn, and for one key from the names that it speaks for', () => {
    const clients = ['key app/ada', 'key app/ada', 'key app/ada', 'key app/bob', 'key other', 'key other', 'key other'];
    const jobs = clients.map((client, index) => job(`${index}`, '', client));
    const waiting = waitingOf(...jobs);
    expect([waiting.of('key app/ada').jobs, waiting.ofHolder('key app/eve').jobs, waiting.of('key app').jobs]).toEqual([
      3, 4, 0,
    ]);
    const positions = jobs.map((each) => waiting.positionOf(each));
    const taken = takeAll(waiting);
    expect(taken).toEqual(['0', '4', '3', '5', '1', '6', '2']);
    expect(positions).toEqual(jobs.map((_, index) => taken.indexOf(`${index}`) + 1));
  });

  it('let another one of the same client start where the first may not, and keep its place', () => {
    const waiting = waitingOf(job('a1'), job('a2'), job('b1'));
    expect(takeAll(waiting, ({ accepted }) => accepted.id !== 'a1')).toEqual(['a2', 'b1']);
    expect(takeAll(waiting)).toEqual(['a1']);
  });

  it('take one back before the others of its client', () => {
    const waiting = waitingOf(job('a1'), job('a2'), job('a3'));
    const first = waiting.takeNext(() => true);
    if (first !== null) waiting.putBack(first);
    expect(takeAll(waiting)).toEqual(['a1', 'a2', 'a3']);
  });

  it('are counted, with the bytes of their texts, for each client too', () => {
    const [one, other] = [job('a1', 'ü'), job('b1', 'abc')];
    const waiting = waitingOf(one, other);
    expect([waiting.count, waiting.bytes, waiting.of('a')]).toEqual([2, 5, { jobs: 1, bytes: 2 }]);
    expect([waiting.remove(one), waiting.remove(one)]).toEqual([true, false]);
    expect([waiting.count, waiting.bytes, waiting.of('a')]).toEqual([1, 3, { jobs: 0, bytes: 0 }]);
  });
});
