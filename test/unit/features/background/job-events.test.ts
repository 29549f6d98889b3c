import { array, assert, asyncProperty, integer, string } from 'fast-check';
import { endId, sendJobEvents } from '../../../../src/features/background/routes.js';
import { systemClock } from '../../../../src/shared/clock.js';
import type { JobEnd, JobEvent } from '../../../../src/shared/job.js';
import { EventStream } from '../../../../src/worker/http/event-stream.js';
import type { Reply } from '../../../../src/worker/http/exchange.js';
import { offlineRoutes } from '../../../support/doors/offline-routes.js';
import { answerInPieces, backgroundView } from '../../../support/jobs/background-view.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { jobDone, jobFailed, plainForm } from '../../../support/jobs/job-records.js';

interface ToldEvent {
  /** A number, except for an event of a client that gets thoughts. */
  readonly id: number | string | null;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

const never = new AbortController().signal;

interface Kept {
  readonly isStructured?: boolean;
  /** Stored answer, if it differs from the text streamed while the job ran. */
  readonly kept?: string;
}

/** Returns the events for a reader whose last event was this one. */
async function toldAfter(
  after: number | string,
  events: readonly JobEvent[],
  { isStructured = false, kept }: Kept = {},
): Promise<ToldEvent[]> {
  let written = '';
  const take = (text: string | Buffer) => {
    written += text;
    return true;
  };
  const res = { headersSent: true, write: take, locals: {} } as unknown as Reply;
  using out = new EventStream(res, systemClock);
  const job = backgroundView({ form: { ...plainForm, isStructured } });
  const deltas = events.map((event) => (event.type === 'text-delta' ? event.text : ''));
  const end = events.at(-1);
  const text = kept ?? deltas.join('');
  const jobAnswer = end?.type === 'job-end' && end.outcome === 'ok' ? answerInPieces(text, end) : undefined;
  const primary = new FakePrimary({ jobAnswer }, async function* () {
    yield* events;
  });
  const [id = 0, thoughts = 0] = String(after).split('-').map(Number);
  await sendJobEvents({ primary: primary.asPrimary, offlineRoutes }, job, { id, thoughts }, out, 'key a', never);
  return written.split('\n\n').slice(0, -1).map(eventOf);
}

function eventOf(block: string): ToldEvent {
  const [, id, event = '', data = ''] = /^(?:id: ([\d-]+)\n)?event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
  return { id: id === undefined ? null : id.includes('-') ? id : Number(id), event, data: JSON.parse(data) };
}

function eventsWith(pieces: readonly string[], end: JobEnd = jobDone({ model: 'eliza' })): JobEvent[] {
  return [{ type: 'job-start', queueMs: 3 }, ...pieces.map((text): JobEvent => ({ type: 'text-delta', text })), end];
}

function textOf(events: readonly ToldEvent[]): string {
  return events.map(({ event, data }) => (event === 'delta' ? data.text : '')).join('');
}

describe('The events of a background job', () => {
  it('equal those of a streamed request, with ids for the position in the answer', async () => {
    const queued: JobEvent = { type: 'job-queued', position: 2, reason: 'slot' };
    const told = await toldAfter(0, [queued, ...eventsWith(['Hel', 'lo'])]);
    const done = { success: true, response: 'Hello', model: 'eliza', request_id: 'request 1' };
    expect(told).toEqual([
      { id: null, event: 'queued', data: { position: 2, reason: 'slot' } },
      { id: 1, event: 'started', data: { queue_ms: 3 } },
      { id: 4, event: 'delta', data: { text: 'Hel' } },
      { id: 6, event: 'delta', data: { text: 'lo' } },
      { id: endId, event: 'done', data: expect.objectContaining(done) },
    ]);
  });

  it.each<[number, string]>([
    [0, 'started Hel lo done'],
    [1, 'Hel lo done'],
    [2, 'el lo done'],
    [4, 'lo done'],
    [5, 'o done'],
    [6, 'done'],
    [7, 'done'],
    [endId - 1, 'done'],
    [endId, ''],
  ])('continue after the last received one: %d', async (after, expected) => {
    const told = await toldAfter(after, eventsWith(['Hel', 'lo']));
    expect(told.map(({ event, data }) => data.text ?? event).join(' ')).toBe(expected);
  });

  it.each<[string, JobEnd, object]>([
    ['error', jobFailed('timeout'), { error: 'timeout', message: 'it failed', request_id: 'request 1' }],
    ['cancelled', jobFailed('cancelled'), { job_id: 'some-id' }],
  ])('end with %s, whose id is higher than that of the text', async (event, end, data) => {
    expect((await toldAfter(3, eventsWith(['Hi'], end))).at(-1)).toEqual({ id: endId, event, data });
    expect(await toldAfter(endId, eventsWith(['Hi'], end))).toEqual([]);
  });

  it('include their end even for a reader that received more than is stored', async () => {
    const lost = await toldAfter(100, eventsWith([], jobFailed('cli_error')));
    expect(lost).toMatchObject([{ id: endId, event: 'error', data: { error: 'cli_error' } }]);
    const corrected = await toldAfter(100, eventsWith(['Hello']));
    expect(corrected).toMatchObject([{ id: endId, event: 'done', data: { response: 'Hello' } }]);
  });

  it('end correctly for an empty answer, and for an answer that the CLI corrected', async () => {
    const [, done] = await toldAfter(0, eventsWith([]));
    expect(done).toMatchObject({ id: endId, event: 'done', data: { response: '' } });
    const corrected = await toldAfter(0, eventsWith(['Hallo']), { kept: 'Hello' });
    expect(corrected.at(-1)).toMatchObject({ id: endId, event: 'done', data: { response: 'Hello' } });
  });

  it('end with the value of a structured answer', async () => {
    const told = await toldAfter(0, eventsWith(['{"a"', ':1}']), { isStructured: true });
    expect(told.at(-1)?.data).toMatchObject({ response: '{"a":1}', structured: { a: 1 } });
  });

  it('add up to the same text wherever a reader reconnects, for any size of the pieces', async () => {
    const pieces = array(string({ unit: 'binary', minLength: 1, maxLength: 5 }), { maxLength: 5 });
    await assert(
      asyncProperty(pieces, integer({ min: 0, max: 30 }), integer({ min: 1, max: 9 }), async (texts, cut, size) => {
        const whole = texts.join('');
        const first = (await toldAfter(0, eventsWith(texts))).slice(0, cut);
        const last = first.findLast(({ id }) => id !== null)?.id ?? 0;
        const again = whole.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []; // the pieces may split surrogate pairs
        const rest = await toldAfter(last, eventsWith(again));
        expect(textOf(first) + textOf(rest)).toBe(whole);
        const ids = [...first, ...rest].flatMap(({ id }) => id ?? []);
        expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => Number(a) - Number(b)));
        expect([...first, ...rest].at(-1)?.event).toBe('done');
      }),
    );
  });

  it('continue within thoughts and within the text behind them', async () => {
    const thought = (text: string): JobEvent => ({ type: 'thought-delta', text });
    const end: JobEvent = { type: 'thought-end' };
    const all: JobEvent[] = [thought('One'), end, thought('Two'), end, ...eventsWith(['Hello'])];
    const continued = async (last: string) =>
      (await toldAfter(last, all)).map(({ id, data }) => `${id} ${data.text ?? 'end'}`).slice(0, -1);
    expect(await continued('1')).toEqual(['1-3 One', '1-8 \n\nTwo', '6-8 Hello']);
    expect(await continued('1-3')).toEqual(['1-8 \n\nTwo', '6-8 Hello']);
    expect(await continued('1-6')).toEqual(['1-8 wo', '6-8 Hello']);
    expect(await continued('4-8')).toEqual(['6-8 lo']);
    expect(await toldAfter(endId, all)).toEqual([]);
  });

  it('have no end if their stream has none', async () => {
    const started: JobEvent = { type: 'job-start', queueMs: 3 };
    expect((await toldAfter(0, [started])).map(({ event }) => event)).toEqual(['started']);
  });
});
