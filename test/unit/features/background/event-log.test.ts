import { array, assert, asyncProperty, constant, constantFrom, double, oneof, string } from 'fast-check';
import { AnswerLog, EventLog } from '../../../../src/features/background/event-log.js';
import { StoredJobs } from '../../../../src/features/background/stored-jobs.js';
import { MemoryJobs } from '../../../../src/features/stores/memory/memory-store.js';
import type { AnswerEvent, JobEvent, WaitReason } from '../../../../src/shared/job.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { all } from '../../../support/jobs/job-harness.js';
import { jobDone } from '../../../support/jobs/job-records.js';
import { acceptedJob } from '../../../support/stores/shared-jobs.js';

function read(log: AnswerLog, from: number): string {
  let text = '';
  for (let piece = log.readBlock(from); piece !== ''; piece = log.readBlock(from + text.length)) text += piece;
  return text;
}

describe('The log of an answer', () => {
  it('can be read from any offset, in blocks within the limit of the channel that split no surrogate pair', async () => {
    const piece = oneof(string({ maxLength: 30 }), constantFrom('x'.repeat(16_384), '🚀'.repeat(9000)));
    await assert(
      asyncProperty(array(piece, { maxLength: 8 }), double({ min: 0, max: 1, noNaN: true }), async (pieces, share) => {
        const log = new AnswerLog();
        for (const each of pieces) log.addText(each);
        const whole = pieces.join('');
        const from = Math.floor(share * whole.length);
        expect(log.length).toBe(whole.length);
        expect(read(log, from)).toBe(whole.slice(from));
        expect(read(log, whole.length + 1)).toBe('');
        for (const { text } of log.blocks) {
          expect(text.length).toBeLessThanOrEqual(16 * 1024);
          expect(text).not.toMatch(/[\ud800-\udbff]$|^[\udc00-\udfff]/);
        }
      }),
    );
  });

  it('joins small pieces', () => {
    const log = new AnswerLog();
    for (let count = 0; count < 10_000; count++) log.addText('ab');
    expect(log.blocks).toHaveLength(2);
    expect(log.readBlock(19_999)).toBe('b');
  });
});

function open() {
  const clock = new FakeClock();
  const place: { position: number; reason: WaitReason } = { position: 3, reason: 'slot' };
  const log = new EventLog(clock, () => place);
  const follow = (signal = new AbortController().signal) => all(log.readEvents(signal));
  return { clock, place, log, follow };
}

function delta(text: string): JobEvent {
  return { type: 'text-delta', text };
}

/** Joins adjacent pieces of a text, an input or a thought. */
function joined(events: readonly JobEvent[]): JobEvent[] {
  const all: JobEvent[] = [];
  for (const event of events) {
    const last = all.at(-1);
    const isSame = last?.type === event.type && 'text' in last && 'text' in event && event.type !== 'job-end';
    if (isSame) all[all.length - 1] = { ...event, text: `${last.text}${event.text}` } as JobEvent;
    else all.push(event);
  }
  return all;
}

/** Stores the end of a job with this log, and yields its events from the store. */
async function* storedEvents(log: EventLog, clock: FakeClock): AsyncGenerator<JobEvent> {
  const store = new MemoryJobs();
  await store.accept(acceptedJob('j1', clock.now() - 3000));
  await store.startJob('j1', clock.now());
  const stored = new StoredJobs(store, 1000, clock);
  await stored.endJob('j1', 'key a', jobDone(), log);
  yield* stored.events('j1', 'key a', new AbortController().signal);
}

describe('The events of a background job', () => {
  it('are complete for readers who connect at the beginning, in the middle, and after the end', async () => {
    const { clock, place, log, follow } = open();
    const early = follow();
    await clock.advance(2500);
    place.position = 1;
    await clock.advance(500);
    log.writeStart(3000);
    log.write(textDelta('Hel'));
    await settled();
    const middle = follow();
    await settled();
    log.write(textDelta('lo'));
    await settled();
    log.writeEnd(jobDone({ text: 'Hallo' }));
    const begun: JobEvent = { type: 'job-start', queueMs: 3000 };
    const end = jobDone({ text: 'Hallo' });
    const queued = [3, 1].map((position): JobEvent => ({ type: 'job-queued', position, reason: 'slot' }));
    expect(await early).toEqual([...queued, begun, delta('Hel'), delta('lo'), end]);
    expect(await middle).toEqual([begun, delta('Hel'), delta('lo'), end]);
    expect(await follow()).toEqual([begun, delta('Hello'), end]);
  });

  it('are sent at the pace of each reader, and unread pieces are joined', async () => {
    const { log } = open();
    const reader = log.readEvents(new AbortController().signal);
    log.writeStart(3000);
    await reader.next();
    for (const text of ['a', 'b', 'c']) log.write(textDelta(text));
    expect((await reader.next()).value).toEqual(delta('abc'));
  });

  it('have their calls and thoughts in the same order for a live reader, a later one, and a reader of the store', async () => {
    const text = string({ minLength: 1, maxLength: 9 });
    const event = oneof(
      text.map(textDelta),
      text.map((name): AnswerEvent => ({ type: 'call-start', id: name, name })),
      text.map((input): AnswerEvent => ({ type: 'call-delta', text: input })),
      text.map((thought): AnswerEvent => ({ type: 'thought-delta', text: thought })),
      constant<AnswerEvent>({ type: 'thought-end' }),
    );
    await assert(
      asyncProperty(array(event, { maxLength: 12 }), async (events) => {
        const { log, follow, clock } = open();
        log.writeStart(3000);
        const live = follow();
        for (const each of events) {
          log.write(each);
          await settled();
        }
        log.writeEnd(jobDone());
        const wanted = joined([{ type: 'job-start', queueMs: 3000 }, ...events, jobDone()]);
        expect(joined(await live)).toEqual(wanted);
        expect(joined(await follow())).toEqual(wanted);
        expect(joined(await all(storedEvents(log, clock)))).toEqual(wanted);
      }),
    );
  });

  it('end with a job that never started, and the signal of one reader stops only that reader', async () => {
    const { clock, log, follow } = open();
    const controller = new AbortController();
    const leaver = follow(controller.signal);
    const stayer = follow();
    await settled();
    controller.abort(new Error('gone'));
    await expect(leaver).rejects.toThrow('gone');
    log.writeEnd({ ...jobDone(), outcome: 'cancelled', failure: { code: 'cancelled', message: 'enough' } });
    expect((await stayer).map(({ type }) => type)).toEqual(['job-queued', 'job-end']);
    expect(clock.pending).toBe(0);
  });

  it('stop once another host may run the job', async () => {
    const { log, follow } = open();
    const told = follow();
    await settled();
    log.lose();
    expect(await told).toEqual([{ type: 'job-queued', position: 3, reason: 'slot' }]);
  });
});
