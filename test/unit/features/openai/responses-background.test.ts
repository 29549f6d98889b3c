import { array, assert, asyncProperty, constantFrom, integer, oneof, string } from 'fast-check';
import { getResponse } from '../../../../src/features/openai/responses.js';
import type { JobForm, JobView } from '../../../../src/shared/background.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { JobEnd, JobEvent } from '../../../../src/shared/job.js';
import { serveWith } from '../../../support/doors/express-server.js';
import { answerInPieces, backgroundView } from '../../../support/jobs/background-view.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';

interface NumberedEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly delta?: string;
  readonly response?: Readonly<Record<string, unknown>>;
}

const plain: JobForm = {
  ...{ route: '/v1/responses', model: 'eliza', isStructured: false },
  ...{ hasTools: false, hasThoughts: false },
};
const mixed: JobForm = { ...plain, hasTools: true, hasThoughts: true };
const start: JobEvent = { type: 'job-start', queueMs: 3 };
const delta = (text: string): JobEvent => ({ type: 'text-delta', text });

/** Requests the stream of a response with these events. `query`: more of the query. */
function answered(events: readonly JobEvent[], query = '', differences: Partial<JobView> = {}) {
  const text = events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('');
  const end = events.at(-1);
  const jobAnswer = end?.type === 'job-end' && end.outcome === 'ok' ? answerInPieces(text, end) : undefined;
  const job = backgroundView({ form: plain, ...differences });
  const primary = new FakePrimary({ job, jobAnswer, responsePiece: { text: '', bytes: 0 } }, async function* () {
    yield* events;
  });
  return sent(primary, query);
}

async function sent(primary: FakePrimary, query: string) {
  const handler = getResponse({
    primary: primary.asPrimary,
    clock: systemClock,
    closing: new AbortController().signal,
  });
  await using server = await serveWith([
    (req, res, next) => handler(Object.assign(req, { params: { response_id: 'resp_some-id' } }), res, next),
  ]);
  const answer = await fetch(`http://127.0.0.1:${server.port}/?stream=true${query}`);
  return { status: answer.status, text: await answer.text() };
}

function messageIn(text: string): unknown {
  return (JSON.parse(text) as { readonly message: unknown }).message;
}

async function eventsAfter(after: number, events: readonly JobEvent[], form = plain): Promise<NumberedEvent[]> {
  const query = after < 0 ? '' : `&starting_after=${after}`;
  const { status, text } = await answered(events, query, { form });
  expect(status).toBe(200);
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json) as NumberedEvent);
}

const typesOf = (events: readonly NumberedEvent[]) => events.map(({ type }) => type.replace(/^response\./, ''));

describe('The stream of a background response', () => {
  it('has web searches at their place, also when it is resumed after one', async () => {
    const search = { id: 's1', query: 'rain', results: [{ title: 'Rain', url: 'https://a.org/rain' }], count: 1 };
    const end = jobDone({ searches: [{ ...search, at: 6, thoughts: 0 }] });
    const events = [start, delta('Look: '), { type: 'search', ...search } as const, delta('rain'), end];
    const all = await eventsAfter(-1, events, mixed);
    const searchEvents = typesOf(all).filter((type) => type.startsWith('web_search_call.'));
    expect(searchEvents).toEqual(['in_progress', 'searching', 'completed'].map((name) => `web_search_call.${name}`));
    const output = [{ type: 'message' }, { type: 'web_search_call', action: { query: 'rain' } }, { type: 'message' }];
    expect(all.at(-1)?.response).toMatchObject({ status: 'completed', output });
    const done = all.find(({ type }) => type === 'response.web_search_call.completed')?.sequence_number ?? 0;
    expect(await eventsAfter(done, events, mixed)).toEqual(all.slice(done + 1));
  });

  it('begins in the queue, and numbers its events from 0', async () => {
    const queued: JobEvent = { type: 'job-queued', position: 2, reason: 'slot' };
    const events = await eventsAfter(-1, [queued, start, delta('Hi '), delta('Ada'), jobDone({ model: 'eliza-2' })]);
    expect(typesOf(events)).toEqual([
      ...['created', 'queued', 'in_progress', 'output_item.added', 'content_part.added', 'output_text.delta'],
      ...['output_text.done', 'content_part.done', 'output_item.done', 'completed'],
    ]);
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
    expect(events[0]?.response).toMatchObject({
      id: 'resp_some-id',
      status: 'queued',
      background: true,
      model: 'eliza',
    });
    const output = [{ id: 'msg_some-id', content: [{ text: 'Hi Ada' }] }];
    expect(events.at(-1)?.response).toMatchObject({ status: 'completed', background: true, completed_at: 3, output });
  });

  it('is the same for each reader from any event on, however its output arrives', async () => {
    const words = string({ unit: constantFrom(...('ab \n🚀'.match(/./gsu) ?? [])), minLength: 1, maxLength: 30 });
    const output = oneof(
      words.map((text) => [delta(text)]),
      words.map((text): JobEvent[] => [{ type: 'thought-delta', text }, { type: 'thought-end' }]),
      words.map((text): JobEvent[] => [
        { type: 'call-start', id: `c${text.length}`, name: 'find' },
        { type: 'call-delta', text: JSON.stringify({ text }) },
      ]),
    );
    const inHalves = (event: JobEvent): JobEvent[] => {
      if (!('text' in event) || event.type === 'job-end') return [event];
      const half = Math.ceil(event.text.length / 2);
      return [event.text.slice(0, half), event.text.slice(half)].map((text) => ({ ...event, text }));
    };
    await assert(
      asyncProperty(array(output, { maxLength: 5 }), integer({ min: 0, max: 40 }), async (outputs, cut) => {
        const events = [start, ...outputs.flat(), jobDone()];
        const first = await eventsAfter(-1, events, mixed);
        expect(first.map(({ sequence_number: number }) => number)).toEqual(first.map((_, index) => index));
        const after = Math.min(cut, first.length - 1);
        expect(await eventsAfter(after, events.flatMap(inHalves), mixed)).toEqual(first.slice(after + 1));
      }),
      { numRuns: 60 },
    );
  });

  it.each<[string, JobEnd, string[], object]>([
    [
      'a failure',
      jobFailed('timeout'),
      ['error', 'failed'],
      { status: 'failed', error: { code: 'timeout', message: 'it failed' } },
    ],
    ['a cancel', jobFailed('cancelled'), ['failed'], { status: 'cancelled', error: null }],
  ])('ends with the response after %s', async (_, end, types, response) => {
    const events = await eventsAfter(5, [start, delta('Hello '), end]);
    expect([typesOf(events), events.at(-1)?.response]).toEqual([types, expect.objectContaining(response)]);
  });

  it('ends with an error for a reader that has events which died with their host', async () => {
    const failure = { code: 'cli_error', reason: 'host_lost', message: 'the service died while the job ran' } as const;
    const events = await eventsAfter(70, [start, jobFailed('cli_error', { failure })]);
    expect(events.map(({ type, sequence_number: number }) => [type, number])).toEqual([
      ['error', 71],
      ['response.failed', 72],
    ]);
  });

  it('has no events after its last one, and refuses a number beyond it', async () => {
    const events = [start, delta('Hi'), jobDone()];
    expect(await eventsAfter(9, events)).toEqual([]);
    const { status, text } = await answered(events, '&starting_after=10');
    const message = 'starting_after: is beyond the last event of this response, which has the number 9';
    expect([status, messageIn(text)]).toEqual([400, message]);
  });

  it.each<[string, string, Partial<JobView>]>([
    ['starting_after: must be the sequence_number of an event', '&starting_after=x', {}],
    ['starting_after: must be the sequence_number of an event', '&starting_after=-1', {}],
    ['starting_after: must be sent once', '&starting_after=1&starting_after=2', {}],
    ['stream: is supported only for a background response, which this is not', '', { form: null }],
    [
      'stream: is not supported: an earlier version of the service has accepted this response',
      '',
      { form: { route: '/v1/responses', model: 'eliza', isStructured: false } },
    ],
  ])('is refused: %s', async (message, query, differences) => {
    const { status, text } = await answered([start, jobDone()], query, differences);
    expect([status, messageIn(text)]).toEqual([400, message]);
  });

  it('stops without an end if another host takes over its job', async () => {
    expect(typesOf(await eventsAfter(2, [start, delta('Hello ')]))).toEqual([
      ...['output_item.added', 'content_part.added', 'output_text.delta'],
    ]);
  });

  it('is not found for another client', async () => {
    const gone = new RelayError('not_found', 'no such response');
    const { status, text } = await sent(new FakePrimary({ job: gone, responsePiece: gone }), '');
    expect([status, messageIn(text)]).toEqual([404, 'no such response']);
  });
});
